# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

# Each verb prints its commands before it runs them. `make` alone explains the verbs.

# What run-local uses: auto, nghttp2 or curl; KEEP=1 leaves everything running.
TRANSPORT ?= auto
KEEP ?= 0

# Options of lamplighter demo, such as --duration 60.
DEMO ?=

# Rounds of chaos, and more of its options, such as --seed 7 --round 3.
ROUNDS ?= 20
CHAOS ?=

# One breakage of Tests/Mutations, or one target of fuzz, by its name; all when empty.
ONLY ?=

# Lives that simulate tries.
SEEDS ?= 10000

# How long fuzz runs, all its targets together.
SECONDS ?= 300

FORMATTED := Package.swift Sources Tests benchmarks

.PHONY: help deps build demo demo-picture test simulate run-local check-clean-machine check-format format \
	docs chaos mutate conformance fuzz sanitize bench bench-dispatch bench-latency bench-index \
	bench-scaling check-performance clean
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
	scripts/test.sh

simulate: deps ## Try many lives of the whole pipeline under seeded faults (SEEDS=10000)
	swift build -c release -Xswiftc -enable-testing --build-tests --scratch-path .build/simulate
	LAMPLIGHTER_SEEDS=$(SEEDS) swift test -c release -Xswiftc -enable-testing --skip-build \
		--scratch-path .build/simulate --disable-xctest --filter 'loses nothing whatever happens'

run-local: deps ## See one push travel from Kafka to APNs, both simulated (TRANSPORT=curl, KEEP=1)
	swift build --product lamplighter
	TRANSPORT=$(TRANSPORT) KEEP=$(KEEP) scripts/run-local.sh

check-clean-machine: ## See a fresh Debian 12 go from clone to first push in 12 minutes (as root)
	scripts/check-clean-machine.sh

chaos: build ## Run fleets while everything goes wrong, prove that nothing is lost (ROUNDS=20)
	.build/release/lamplighter chaos --rounds $(ROUNDS) $(CHAOS) \
		$(if $(LAMPLIGHTER_TEST_BOOTSTRAP),--bootstrap $(LAMPLIGHTER_TEST_BOOTSTRAP))

mutate: deps ## Break a copy in many small ways, see that a test notices each (ONLY=name)
	ONLY='$(ONLY)' scripts/mutate.sh

conformance: deps ## Run both transports against everything a server may do, docs/transports.md
	swift build --build-tests
	swift test --skip-build --disable-xctest --no-parallel --filter Conformance

sanitize: deps ## Run the suite under the address and the thread sanitizer
	scripts/sanitize.sh

fuzz: deps ## Feed hostile input to everything that reads some (SECONDS=300, ONLY=target)
	SECONDS_TOTAL=$(SECONDS) ONLY='$(ONLY)' scripts/fuzz.sh

bench: deps ## Measure the whole worker beside h2load, benchmarks/RESULTS.md (ROUNDS=5)
	benchmarks/worker.py

bench-dispatch: deps ## Measure both transports beside h2load (ROUNDS=5, PUSHES=1000000)
	benchmarks/dispatch.py

bench-latency: deps ## Measure event to acceptance at fixed rates (ROUNDS=5, SECONDS=5)
	benchmarks/latency.py

bench-index: deps ## Measure the index and its replay (ROUNDS=5, SUBSCRIPTIONS=10000000)
	benchmarks/index.py

bench-scaling: deps ## Measure threads, workers and connections, what limits each (ROUNDS=5, PUSHES=500000)
	benchmarks/scaling.py

check-performance: deps ## Hold instructions per push against the record (WRITE=1 REASON='…')
	benchmarks/instructions.py

check-format: ## Complain about formatting
	swift format lint --strict --parallel --recursive --configuration .swift-format $(FORMATTED)

format: ## Put the formatting right
	swift format --in-place --parallel --recursive --configuration .swift-format $(FORMATTED)

docs: ## Rewrite docs/configuration.md, docs/records.md and docs/schemas from their tables
	WRITE_DOCS=1 swift test --disable-xctest \
		--filter 'the page is what the key table says|what the field tables say'

clean: ## Remove everything that was built or run
	rm -rf .build run
