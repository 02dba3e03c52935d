# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

# Each verb prints its commands before it runs them. `make` alone explains the verbs.

# A variable has one meaning. Five have a short form, for the verb's main one: ROUNDS of chaos and of
# the benchmarks, SECONDS of fuzz and bench-latency, MINUTES of soak, SEEDS of simulate, ONLY of
# mutate-promises, fuzz, check-surfaces, check-schemas, check-deploy and check-examples.

# With 1 check-examples also builds the backend in Swift.
SWIFT ?= 0

# What run-local uses: auto, nghttp2 or curl; KEEP=1 leaves everything running.
TRANSPORT ?= auto
KEEP ?= 0

# Further options of the programs, such as DEMO='--duration 60' or CHAOS='--seed 7 --round 3'.
DEMO ?=
CHAOS ?=
MUTATE ?=

CHAOS_ROUNDS ?= $(or $(ROUNDS),20)

# A folder with the librdkafka.so.1 that is loaded in place of Debian's by all that is run; newer-librdkafka makes one.
# The programs would take the variable for a key of their configuration.
unexport LAMPLIGHTER_RDKAFKA
ifneq ($(LAMPLIGHTER_RDKAFKA),)
ifeq ($(wildcard $(LAMPLIGHTER_RDKAFKA)/librdkafka.so.1),)
$(error LAMPLIGHTER_RDKAFKA: there is no librdkafka.so.1 in $(LAMPLIGHTER_RDKAFKA))
endif
export LD_LIBRARY_PATH := $(abspath $(LAMPLIGHTER_RDKAFKA))$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH))
endif

# Lives that simulate tries.
SIMULATE_SEEDS ?= $(or $(SEEDS),10000)
# `swift test` finds no tests in this package (Tests/XCTMain.swift), and calls that a success; the runner itself
# ends with 69 where a filter matches none.
RUN_TESTS = lamplighterPackageTests.xctest --testing-library swift-testing

# Mutations of Tests/Mutations, or patterns of their names; all when empty.
MUTATION ?= $(ONLY)

# One target of fuzz, all when empty; and how long all of them together run.
FUZZ_TARGET ?= $(ONLY)
FUZZ_SECONDS ?= $(or $(SECONDS),300)

# How often a benchmark measures, and how long each run of bench-latency takes; the benchmark's
# default when empty.
BENCH_ROUNDS ?= $(ROUNDS)
LATENCY_SECONDS ?= $(SECONDS)
bench bench-dispatch bench-latency bench-listeners bench-registrar bench-strangers bench-rolling bench-import bench-index bench-start bench-records \
	bench-scaling: export BENCH_ROUNDS := $(BENCH_ROUNDS)
bench-latency bench-listeners bench-registrar bench-strangers: export LATENCY_SECONDS := $(LATENCY_SECONDS)

# How long soak runs.
SOAK_MINUTES ?= $(MINUTES)
soak soak-registrar: export SOAK_MINUTES := $(SOAK_MINUTES)

# How many rows the old sender of check-moving has.
MOVING_ROWS ?= 1000000
check-moving: export MOVING_ROWS := $(MOVING_ROWS)

# Nobody reads the compiler's index here, and all builds of one folder must have the same options.
SWIFT_BUILD := scripts/swift-build.sh --disable-index-store
# Nor the debugger's information, which costs a tenth of a build. With it: `swift build --build-tests`.
SWIFT_BUILD_DEBUG := $(SWIFT_BUILD) -debug-info-format none

FORMATTED := Package.swift Sources Tests benchmarks clients/swift examples

.PHONY: help deps build build-tests check deb demo demo-picture test simulate run-local check-clean-machine check-image \
	newer-librdkafka check-brokers check-format format docs manifests notices sbom release refresh-packages chaos mutate mutate-promises \
	check-mutations check-surfaces check-registrar check-moving check-schemas check-deploy check-examples conformance fuzz sanitize \
	soak soak-registrar bench bench-dispatch bench-latency bench-listeners bench-registrar bench-strangers bench-rolling bench-overload \
	bench-import bench-index bench-memory bench-start bench-records bench-scaling check-performance clean
.DEFAULT_GOAL := help

help: ## Explain the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## Install the system's packages that are missing (apt), check the Swift toolchain
	scripts/bootstrap.sh

build: deps ## Build the release programs, .build/release/lamplighter and lamplighter-lab
	$(SWIFT_BUILD) -c release --product lamplighter
	$(SWIFT_BUILD) -c release --product lamplighter-lab

deb: ## Build the Debian package of the worker, .build/deb
	scripts/bootstrap.sh deb
	scripts/build-deb.py

demo: ## Build, then see workers killed under traffic and nothing lost (DEMO='--duration 60')
	scripts/demo.sh $(DEMO)

demo-picture: build ## Run the demo and draw it, docs/demo.svg
	mkdir -p run
	.build/release/lamplighter-lab demo --record run/demo.ndjson < /dev/null
	.build/release/lamplighter-lab demo-picture run/demo.ndjson docs/demo.svg

build-tests: deps # Every target, once; what else needs debug programs goes on from it
	$(SWIFT_BUILD_DEBUG) --build-tests

test: build-tests ## Build everything and run every test
	scripts/test.py

check: ## Run everything at length, about an hour: .ci/run is its short form
	scripts/ci.py --full

newer-librdkafka: ## Fetch a librdkafka newer than Debian's (then LAMPLIGHTER_RDKAFKA=.build/librdkafka make test)
	scripts/newer-librdkafka.py

check-brokers: build-tests ## Run fleets on a Kafka that is not Apache's, with a newer librdkafka (ONLY='Kafka rights')
	scripts/check-brokers.py $(if $(ONLY),--filter '$(ONLY)')

simulate: deps ## Try many lives of the whole pipeline under seeded faults (SIMULATE_SEEDS=10000)
	scripts/swift-build.sh -c release -Xswiftc -enable-testing --build-tests --scratch-path .build/simulate
	LAMPLIGHTER_SEEDS=$(SIMULATE_SEEDS) .build/simulate/release/$(RUN_TESTS) --filter 'loses nothing whatever happens'

# With the programs of `make build` if there are any.
LOCAL ?= $(if $(and $(wildcard .build/release/lamplighter),$(wildcard .build/release/lamplighter-lab)),release,debug)
SWIFT_BUILD_LOCAL = $(if $(filter debug,$(LOCAL)),$(SWIFT_BUILD_DEBUG),$(SWIFT_BUILD) -c $(LOCAL))

run-local: deps ## See one push travel from Kafka to APNs, both simulated (TRANSPORT=curl, KEEP=1)
	$(SWIFT_BUILD_LOCAL) --product lamplighter
	$(SWIFT_BUILD_LOCAL) --product lamplighter-lab
	LAMPLIGHTER_PROGRAMS=.build/$(LOCAL) TRANSPORT=$(TRANSPORT) KEEP=$(KEEP) scripts/run-local.sh

check-clean-machine: ## See a fresh Debian go from clone to first push in 12 minutes (as root; SUITE=trixie VERB=test)
	scripts/check-clean-machine.py

check-image: ## Build the image without Docker, and the Debian package, and see each send a push (as root)
	scripts/bootstrap.sh image
	scripts/check-image.py

refresh-packages: ## Put the versions of today into the lists that the image is made of
	scripts/refresh-packages.py

check-deploy: ## See that deploy/ renders, is valid and keeps its rules (ONLY=test_kubernetes)
	scripts/check.py deploy $(ONLY)

check-examples: ## See the garage app's backends lose nothing, its sources type-check (SWIFT=1, ONLY=test_quotes)
	SWIFT=$(SWIFT) scripts/check.py examples $(ONLY)

manifests: ## Rewrite deploy/kubernetes and the chart's schema and rules from their sources
	scripts/check.py deploy --write

notices: build ## Rewrite NOTICES, the licences of what the programs are linked with
	scripts/third_party_notices.py .build/release

sbom: build ## Write the software bill of materials of the release build, run/sbom.cdx.json
	mkdir -p run
	scripts/sbom.py .build/release --output run/sbom.cdx.json

release: deps ## Make what a release has, run/release: archives, package, bill of materials, checksums
	scripts/release.py

chaos: build ## Run fleets while everything goes wrong, prove that nothing is lost (CHAOS_ROUNDS=20)
	.build/release/lamplighter-lab chaos --rounds $(CHAOS_ROUNDS) $(CHAOS) \
		$(if $(LAMPLIGHTER_TEST_BOOTSTRAP),--bootstrap $(LAMPLIGHTER_TEST_BOOTSTRAP))

mutate: deps ## Break a copy in a sample of generated ways, report who notices (MINUTES=30, SEED=1, ONLY=Pipeline, ID=…)
	scripts/mutate.py $(MUTATE)

mutate-promises: deps ## Break each promise in a copy, see that a test notices (ONLY=name, MUTATE='--jobs 2')
	ONLY='$(MUTATION)' scripts/mutate_promises.py $(MUTATE)

check-mutations: ## See that each mutation of a promise still applies to the sources
	scripts/mutate_promises.py --check

check-registrar: ## See what registrars answer, to schemathesis, killed replicas and the client package
	scripts/check.py registrar $(ONLY)

check-moving: build ## Rehearse the move from an old sender with a table of a million rows (MOVING_ROWS=1000000)
	LAMPLIGHTER_PROGRAMS=$(CURDIR)/.build/release scripts/check.py registrar test_moving

check-schemas: ## See records of fastavro, Protobuf and Confluent's serializers become the same JSON (ONLY=test_avro)
	scripts/check.py schemas $(ONLY)

check-surfaces: ## See the live page in Chromium, metrics with promtool, exports with OTLP's types
	scripts/check.py surfaces $(ONLY)

conformance: build-tests ## Run both transports against everything a server may do, docs/transports.md
	.build/debug/$(RUN_TESTS) --no-parallel --filter Conformance

sanitize: deps ## Run the suite under the address and the thread sanitizer
	scripts/sanitize.py

fuzz: deps ## Feed hostile input to everything that reads some (FUZZ_SECONDS=300, FUZZ_TARGET=name)
	SECONDS_TOTAL=$(FUZZ_SECONDS) ONLY='$(FUZZ_TARGET)' scripts/fuzz.sh

bench: deps ## Measure the whole worker beside h2load, then bench-records (BENCH_ROUNDS=5)
	benchmarks/worker.py
	benchmarks/records.py

bench-dispatch: deps ## Measure both transports beside h2load (BENCH_ROUNDS=5, PUSHES=1000000)
	benchmarks/dispatch.py

bench-latency: deps ## Measure event to acceptance at fixed rates (BENCH_ROUNDS=5, LATENCY_SECONDS=5)
	benchmarks/latency.py

bench-listeners: deps ## Compare the p99 with and without a flood of the listeners (BENCH_ROUNDS=12)
	benchmarks/listeners.py

bench-registrar: deps ## Measure acknowledged registrations, what each costs, the memory of a million
	scripts/bootstrap.sh registrar-bench
	benchmarks/registrar.py

soak-registrar: build ## Kill, freeze and cut off two and three registrars, hold them to a journal (SOAK_MINUTES=30)
	benchmarks/registrar_soak.py

bench-strangers: deps ## Measure what 4,000 hostile connections of each kind cost a registrar and its callers
	scripts/bootstrap.sh registrar-bench
	benchmarks/strangers.py

bench-rolling: deps ## Replace three workers under traffic: p99, silence, duplicates (BENCH_ROUNDS=3, ROLLING_TOKENS='100000 10000000')
	benchmarks/rolling.py

bench-overload: deps ## Measure a stall of APNs, a hot subject, floods, the minimum gap (OVERLOAD_TOKENS=200000, OVERLOAD_STALL=60, …)
	benchmarks/overload.py

bench-index: deps ## Measure the index and its replay (BENCH_ROUNDS=5, SUBSCRIPTIONS=10000000)
	benchmarks/index.py

bench-memory: deps ## Account for the memory of a worker with a million tokens (TOKENS=1000000, PUSHES=500000)
	benchmarks/memory.py

bench-import: deps ## Measure how long an import of registrations takes, and its memory (BENCH_ROUNDS=5, ROWS=1000000)
	benchmarks/imports.py

bench-start: deps ## Measure starts by replay, with a snapshot, after kill -9 (BENCH_ROUNDS=3, START_TOKENS='1000000 10000000')
	benchmarks/start.py

bench-records: deps ## Measure records in Avro and Protobuf beside JSON (BENCH_ROUNDS=5, RECORDS=500000)
	benchmarks/records.py

bench-scaling: deps ## Measure threads, workers and connections, what limits each (BENCH_ROUNDS=5, PUSHES=500000)
	benchmarks/scaling.py

soak: deps ## See that nothing grows, slows down or is lost under slow faults (SOAK_MINUTES=30)
	benchmarks/soak.py

check-performance: deps ## Hold instructions per push against the record (WRITE=1 REASON='…')
	benchmarks/instructions.py

check-format: ## Complain about formatting
	swift format lint --strict --parallel --recursive --configuration .swift-format $(FORMATTED)

format: ## Put the formatting right
	swift format --in-place --parallel --recursive --configuration .swift-format $(FORMATTED)

docs: build-tests ## Rewrite docs/configuration.md, metrics.md, records.md and schemas from their tables
	WRITE_DOCS=1 .build/debug/$(RUN_TESTS) \
		--filter 'the page is what the key table says|what the field tables say|what the table of metrics says|what their table says'

clean: ## Remove everything that was built or run
	rm -rf .build run
