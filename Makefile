# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

# Each verb prints its commands before it runs them. `make` alone explains the verbs.

# What run-local uses: auto, nghttp2 or curl; KEEP=1 leaves everything running.
TRANSPORT ?= auto
KEEP ?= 0

# Options of lamplighter demo, such as --duration 60.
DEMO ?=

FORMATTED := Package.swift Sources Tests

.PHONY: help deps build demo demo-picture test run-local check-clean-machine check-format format \
	doc-config clean
.DEFAULT_GOAL := help

help: ## Explain the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## Install the system's packages that are missing (apt), check the Swift toolchain
	scripts/bootstrap.sh

build: deps ## Build the release programs, .build/release/lamplighter and lamplighter-check
	swift build -c release --product lamplighter
	swift build -c release --product lamplighter-check

demo: ## Build, then see workers killed under traffic and nothing lost (DEMO='--duration 60')
	scripts/demo.sh $(DEMO)

demo-picture: build ## Run the demo and draw it, docs/demo.svg
	mkdir -p run
	.build/release/lamplighter demo --record run/demo.ndjson < /dev/null
	.build/release/lamplighter demo-picture run/demo.ndjson docs/demo.svg

test: deps ## Build everything and run every test
	swift build --build-tests
	swift test --skip-build --disable-xctest --no-parallel

run-local: deps ## See one push travel from Kafka to APNs, both simulated (TRANSPORT=curl, KEEP=1)
	swift build --product lamplighter
	TRANSPORT=$(TRANSPORT) KEEP=$(KEEP) scripts/run-local.sh

check-clean-machine: ## See a fresh Debian 12 go from clone to first push in 12 minutes (as root)
	scripts/check-clean-machine.sh

check-format: ## Complain about formatting
	swift format lint --strict --parallel --recursive --configuration .swift-format $(FORMATTED)

format: ## Put the formatting right
	swift format --in-place --parallel --recursive --configuration .swift-format $(FORMATTED)

doc-config: ## Rewrite docs/configuration.md from the key table
	WRITE_DOCS=1 swift test --disable-xctest --filter 'the page is what the key table says'

clean: ## Remove everything that was built or run
	rm -rf .build run
