// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

// The architecture as code. Each floor has one helper below; a target may import only what its
// floor's helper lets it name, so an import that points up does not compile. Bottom to top:
//
//   C libraries < Bindings < Model < Stages (decide) < Pipeline (decides what needs several of them)
//     < Lifecycle (decides how the worker lives) < Drivers and Simulators (do) < App (wires)
//
// `lamplighter` is App's program, and what runs in a cluster. `lamplighter-lab` is Lab's: simulators,
// demo, chaos and checker, of which nothing is linked into the other.

import PackageDescription

// MARK: Bindings: one per C library, and the only unsafe code.

let cLibraries: [Target] = [
    .cLibrary("CRdkafka", pkgConfig: "rdkafka", package: "librdkafka-dev"),
    .cLibrary("CNghttp2", pkgConfig: "libnghttp2", package: "libnghttp2-dev"),
    .cLibrary("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
    .cLibrary("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    .cLibrary("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
    .target(
        name: "CSimdjson", path: "Sources/Bindings/CSimdjson",
        cxxSettings: [.unsafeFlags(["-O2"])],
        linkerSettings: [.linkedLibrary("simdjson")]),
    .target(name: "CLinux", path: "Sources/Bindings/CLinux"),
]

let bindings: [Target] = [
    .binding("Rdkafka", of: "CRdkafka"),
    .binding("Nghttp2", of: "CNghttp2"),
    .binding("OpenSSL", of: "COpenSSL"),
    // For Simulators, Lab and tests: a worker signs no certificates.
    .binding("TestCertificates", of: "COpenSSL", and: ["OpenSSL"]),
    .binding("Curl", of: "CCurl"),
    .binding("Zlib", of: "CZlib"),
    .binding("Simdjson", of: "CSimdjson"),
    .binding("LinuxIO", of: "CLinux"),
    .binding("FlatMemory", of: "CLinux"),
]

// MARK: Model: the shared vocabulary, and the records that are written with it.

let model: [Target] = [
    .floor("Model", "PushModel", []),
    .floor("Model", "RecordFormats", ["PushModel", "Simdjson"]),
    // Avro and Protobuf: what Intake reads is JSON.
    .floor("Model", "SchemaCodecs", ["PushModel", "Simdjson", "FlatMemory"]),
]

// MARK: Stages: decide. Deterministic, no I/O, no clock. Siblings never import each other but for the
// three that stand on one another: a push gives its claims back to the ledger, and what is deferred
// was planned. The two bindings they may use (flat memory, the JSON parser) touch nothing but memory.

let stages: [Target] = [
    .stage("Intake", uses: ["RecordFormats", "SchemaCodecs", "Simdjson", "FlatMemory"]),
    .stage("Audience", uses: ["FlatMemory"]),
    .stage("Delivery", uses: ["Simdjson", "FlatMemory"]),
    .stage("Ledger", uses: ["FlatMemory"]),
    .stage("Planning", uses: ["FlatMemory"], above: ["Ledger"]),
    .stage("Deferral", uses: ["FlatMemory"], above: ["Planning", "Ledger"]),
]

// MARK: Pipeline: composes the stages, and decides what needs several of them. As pure as they are.

let pipeline: [Target] = [
    .target(
        name: "Pipeline",
        dependencies: [
            "PushModel", "RecordFormats", "Intake", "Audience", "Planning", "Deferral", "Delivery",
            "Ledger", "SchemaCodecs", "FlatMemory", "OpenSSL",
        ],
        path: "Sources/Pipeline", swiftSettings: .house)
]

// MARK: Lifecycle: the worker's own life: rebalances, back-pressure, restarts, stop. Pure, too.

let lifecycle: [Target] = [
    .target(
        name: "Lifecycle", dependencies: ["PushModel", "Pipeline"], path: "Sources/Lifecycle",
        swiftSettings: .house)
]

// MARK: Telemetry: how the worker's figures are written for those who watch it. Pure, too.

let telemetry: [Target] = [
    .target(
        name: "Telemetry", dependencies: ["PushModel"], path: "Sources/Telemetry",
        swiftSettings: .house)
]

// MARK: Drivers: do. Each runs stages against one outside world.

let drivers: [Target] = [
    .floor(
        "Drivers", "KafkaLog",
        ["PushModel", "Delivery", "Rdkafka", "Curl", "Simdjson", "LinuxIO"], logs: true),
    .floor(
        "Drivers", "APNSDelivery",
        [
            "PushModel", "Delivery", "Nghttp2", "OpenSSL", "Curl", "Simdjson", "LinuxIO",
            "FlatMemory",
        ],
        logs: true),
    // Metrics and spans, to an OpenTelemetry collector.
    .floor(
        "Drivers", "OTLPExporter", ["PushModel", "Delivery", "Telemetry", "Curl"]),
    // Schemas of records, by the API of Confluent's registry.
    .floor(
        "Drivers", "SchemaRegistry",
        ["PushModel", "Delivery", "SchemaCodecs", "Curl", "Simdjson", "LinuxIO"]),
    // The one HTTP server: for probes, metrics and the operator's questions.
    .floor(
        "Drivers", "HTTPListener", ["PushModel", "OpenSSL"], logs: true,
        products: [
            .product(name: "NIOCore", package: "swift-nio"),
            .product(name: "NIOPosix", package: "swift-nio"),
            .product(name: "NIOHTTP1", package: "swift-nio"),
        ]),
]

// MARK: Simulators: stand in for Apple and Kafka, for Lab and tests.

let simulators: [Target] = [
    .floor(
        "Simulators", "APNSSimulator",
        ["PushModel", "Nghttp2", "OpenSSL", "TestCertificates", "Simdjson", "LinuxIO"],
        logs: true),
    .floor("Simulators", "EmbeddedKafka", ["Rdkafka", "LinuxIO"]),
]

// MARK: Registrar: how tokens come in. What may be written to the registrations topic (as pure as a
// stage), who may write which installation's, and the service, `lamplighter registrar`.

let registrar: [Target] = [
    .floor("Registrar", "RegistrarRules", ["PushModel", "RecordFormats", "Simdjson"]),
    // Rows of another sender's data: which become registrations. As pure.
    .floor("Registrar", "Importing", ["PushModel", "RecordFormats", "RegistrarRules", "Simdjson"]),
    .floor(
        "Registrar", "RegistrarAccess",
        ["PushModel", "OpenSSL", "Curl", "Simdjson", "LinuxIO"]),
    .floor(
        "Registrar", "Registrar",
        [
            "Configuration", "PushModel", "RecordFormats", "RegistrarRules", "RegistrarAccess",
            "KafkaLog", "HTTPListener", "Telemetry", "LinuxIO", "OpenSSL", "Rdkafka", "Simdjson",
            "Curl",
        ],
        logs: true,
        products: [
            .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
        ],
        plugins: ["EmbedText"]),
]

// MARK: App: knows everyone; connects what decides with what does, and runs it.

let app: [Target] = [
    // The page that shows a worker in a browser: its files are compiled into the program.
    .target(
        name: "LivePage", dependencies: ["HTTPListener"], path: "Sources/App/LivePage",
        swiftSettings: .house, plugins: ["EmbedText"]),
    // What may be configured, of which a worker and a registrar read what is theirs. Of the stages
    // and drivers it takes the types of their settings and what checks them.
    .floor(
        "App", "Configuration",
        [
            "PushModel", "RecordFormats", "Intake", "SchemaCodecs", "Delivery", "KafkaLog",
            "HTTPListener", "OTLPExporter", "Telemetry", "SchemaRegistry", "Curl",
        ],
        logs: true, products: [.product(name: "Yams", package: "Yams")]),
    .floor(
        "App", "Worker",
        [
            "Configuration", "PushModel", "RecordFormats", "Lifecycle", "Pipeline", "Audience",
            "Intake", "Delivery", "KafkaLog", "APNSDelivery", "HTTPListener", "LivePage",
            "OTLPExporter", "Telemetry", "SchemaRegistry", "SchemaCodecs", "LinuxIO",
            "FlatMemory", "OpenSSL", "Rdkafka", "Simdjson",
        ],
        logs: true,
        products: [
            .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
        ]),
    // How both programs start and end.
    .floor(
        "App", "Entrypoint",
        ["PushModel", "KafkaLog", "LinuxIO", "OpenSSL", "Rdkafka", "Nghttp2", "Curl"],
        products: [.product(name: "ArgumentParser", package: "swift-argument-parser")],
        plugins: ["BuildCommit"]),
    .executableTarget(
        name: "lamplighter",
        dependencies: [
            "Entrypoint", "Configuration", "Worker", "Registrar", "Pipeline", "PushModel",
            "RecordFormats", "SchemaCodecs", "Intake", "Delivery", "HTTPListener",
            "RegistrarAccess", "RegistrarRules", "Importing", "KafkaLog", "APNSDelivery",
            "SchemaRegistry", "LinuxIO", "OpenSSL", "Rdkafka", "Nghttp2", "Curl", "Simdjson",
            "Zlib",
            .product(name: "ArgumentParser", package: "swift-argument-parser"),
            .product(name: "Logging", package: "swift-log"),
            .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        ],
        path: "Sources/App/lamplighter",
        swiftSettings: .house),
    // Tells the programs which commit they were built from.
    .plugin(name: "BuildCommit", capability: .buildTool(), path: "Sources/App/BuildCommit"),
    // Compiles the texts that they serve into them.
    .plugin(name: "EmbedText", capability: .buildTool(), path: "Sources/App/EmbedText"),
]

// MARK: Lab: for trying out and proving; its program is not the one that runs in a cluster.

let lab: [Target] = [
    // Imports nothing of the worker's but the binding to librdkafka, so that no mistake of ours is
    // made twice.
    .floor("Lab", "Checker", ["Rdkafka"]),
    // A fleet's processes, configuration, traffic and logs, for whoever runs one.
    .floor(
        "Lab", "FleetKit",
        ["PushModel", "RecordFormats", "KafkaLog", "Rdkafka", "Curl", "LinuxIO"], logs: true),
    .floor(
        "Lab", "Demo",
        ["FleetKit", "Checker", "PushModel", "LinuxIO", "HTTPListener", "LivePage", "Curl"],
        logs: true),
    // Pretended iPhones, which register over HTTP.
    .floor("Lab", "Devices", ["PushModel", "RecordFormats", "OpenSSL", "Curl", "LinuxIO"]),
    .executableTarget(
        name: "lamplighter-lab",
        dependencies: [
            "Entrypoint", "Checker", "FleetKit", "Demo", "Devices", "APNSSimulator",
            "EmbeddedKafka", "SchemaCodecs", "SchemaRegistry", "LinuxIO",
            "PushModel",
            "OpenSSL", "TestCertificates",
            .product(name: "ArgumentParser", package: "swift-argument-parser"),
            .product(name: "Logging", package: "swift-log"),
        ],
        path: "Sources/Lab/lamplighter-lab",
        swiftSettings: .house),
]

// MARK: Tests mirror Sources; Simulation and Integration cut across.

// While one part is worked on, its tests can be all that is built: LAMPLIGHTER_TESTS=PipelineTests,AppTests
let wantedTests = Context.environment["LAMPLIGHTER_TESTS"]?.split(separator: ",").map(String.init)

let tests: [Target] = [
    .tests(
        "BindingsTests",
        [
            "PushModel", "FleetKit", "Rdkafka", "Nghttp2", "OpenSSL", "TestCertificates", "Curl",
            "Simdjson", "Zlib",
            "LinuxIO",
            "FlatMemory",
        ]),
    .tests(
        "StagesTests",
        [
            "PushModel", "RecordFormats", "Intake", "Audience", "Planning", "Deferral", "Delivery",
            "Ledger", "RegistrarRules", "Importing", "SchemaCodecs", "Simdjson", "FlatMemory",
            "OpenSSL",
        ]),
    .tests(
        "PipelineTests",
        [
            "PushModel", "RecordFormats", "Lifecycle", "Pipeline", "Intake", "Audience", "Planning",
            "Deferral", "Delivery", "Ledger", "SchemaCodecs", "FlatMemory",
        ]),
    .tests("LifecycleTests", ["Lifecycle", "Pipeline", "PushModel"]),
    .tests(
        "DriversTests",
        [
            "PushModel", "Delivery", "KafkaLog", "APNSDelivery", "HTTPListener", "OTLPExporter",
            "Telemetry", "SchemaRegistry", "SchemaCodecs", "APNSSimulator",
            "EmbeddedKafka", "FleetKit", "Nghttp2", "OpenSSL", "TestCertificates", "Curl",
            "LinuxIO", "Rdkafka",
        ], logs: true),
    .tests(
        "RegistrarTests",
        [
            "Registrar", "RegistrarRules", "RegistrarAccess", "Devices", "PushModel",
            "RecordFormats",
            "FleetKit", "HTTPListener", "KafkaLog", "OpenSSL", "Rdkafka", "TestCertificates",
            "LinuxIO",
        ], logs: true),
    .tests("CheckerTests", ["Checker", "Rdkafka", "lamplighter-lab"]),
    .tests(
        "FleetKitTests",
        ["FleetKit", "Configuration", "Worker", "RecordFormats", "PushModel", "lamplighter"],
        logs: true),
    .tests(
        "DemoTests",
        [
            "Demo", "FleetKit", "Checker", "RecordFormats", "PushModel", "HTTPListener", "LivePage",
        ]),
    .tests(
        "AppTests",
        [
            "Configuration", "PushModel", "RecordFormats", "Worker", "lamplighter", "Entrypoint",
            "Lifecycle",
            "Pipeline", "Intake", "Delivery", "KafkaLog", "APNSDelivery", "HTTPListener",
            "LivePage", "OTLPExporter",
            "Telemetry", "EmbeddedKafka", "FleetKit", "SchemaCodecs", "SchemaRegistry", "LinuxIO",
            "OpenSSL", "Rdkafka",
        ],
        logs: true),
    .tests(
        "IntegrationTests",
        [
            "lamplighter", "lamplighter-lab", "Entrypoint", "Configuration", "Worker", "FleetKit",
            "Checker", "PushModel", "RecordFormats", "KafkaLog", "EmbeddedKafka",
            "APNSSimulator", "OpenSSL", "TestCertificates", "LinuxIO", "Rdkafka",
        ], logs: true),
].filter { wantedTests?.contains($0.name) ?? true }

// MARK: Hostile input: the fuzzer's program and the suite share their sources, so one of the two
// exists at a time (scripts/fuzz.sh sets the variable).

let fuzzing: Target = {
    let folder = "Tests/FuzzTests"
    let dependencies: [Target.Dependency] = [
        "PushModel", "RecordFormats", "Intake", "Audience", "Delivery", "Pipeline", "HTTPListener",
        "Configuration", "Worker", "APNSSimulator", "RegistrarAccess", "RegistrarRules",
        "Importing", "Zlib", "Registrar", "SchemaCodecs",
        "SchemaRegistry", "Nghttp2", "CNghttp2", "OpenSSL", "TestCertificates",
        "Simdjson", "FlatMemory",
        .product(name: "Logging", package: "swift-log"),
    ]
    guard Context.environment["LAMPLIGHTER_FUZZ"] != nil else {
        return .testTarget(
            name: "FuzzTests", dependencies: dependencies, path: folder,
            exclude: ["Program", "Corpus"], swiftSettings: .house)
    }
    return .executableTarget(
        name: "lamplighter-fuzz", dependencies: dependencies, path: folder,
        exclude: ["Suite", "Corpus"], swiftSettings: .house)
}()

// MARK: Benchmarks: a program of their own, built where one is asked for (benchmarks/rig.py
// sets the variable), so that nobody else fetches what only they need.

let isBenchmarking = Context.environment["LAMPLIGHTER_BENCH"] != nil

let benchmarks: [Target] = [
    .executableTarget(
        name: "lamplighter-bench",
        dependencies: [
            "PushModel", "RecordFormats", "Intake", "Audience", "Planning", "Delivery", "Ledger",
            "Pipeline", "KafkaLog", "APNSDelivery", "FleetKit", "Rdkafka", "OpenSSL", "LinuxIO",
            "SchemaCodecs", "Simdjson", "FlatMemory",
            .product(name: "ArgumentParser", package: "swift-argument-parser"),
            .product(name: "Histogram", package: "hdrhistogram-swift"),
            .product(name: "Logging", package: "swift-log"),
        ],
        path: "benchmarks/lamplighter-bench",
        swiftSettings: .house)
]

let benchmarkPackages: [Package.Dependency] = [
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", exact: "0.2.0")
]

let package = Package(
    name: "lamplighter",
    products: [
        .executable(name: "lamplighter", targets: ["lamplighter"]),
        .executable(name: "lamplighter-lab", targets: ["lamplighter-lab"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(
            url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
    ] + (isBenchmarking ? benchmarkPackages : []),
    targets: cLibraries + bindings + model + stages + pipeline + lifecycle + telemetry + drivers
        + simulators + registrar
        + app + lab
        + tests + (wantedTests == nil ? [fuzzing] : []) + (isBenchmarking ? benchmarks : []),
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17)

extension Target {
    static func cLibrary(_ name: String, pkgConfig: String, package: String) -> Target {
        .systemLibrary(
            name: name, path: "Sources/Bindings/\(name)", pkgConfig: pkgConfig,
            providers: [.apt([package])])
    }

    static func binding(
        _ name: String, of library: String, and bindings: [String] = []
    ) -> Target {
        .target(
            name: name, dependencies: ([library] + bindings).map { .byName(name: $0) },
            path: "Sources/Bindings/\(name)", swiftSettings: .house)
    }

    static func stage(
        _ name: String, uses pureBindings: [String], above stages: [String] = []
    ) -> Target {
        .floor("Stages", name, ["PushModel"] + pureBindings + stages)
    }

    static func floor(
        _ floor: String, _ name: String, _ dependencies: [String], logs: Bool = false,
        products: [Target.Dependency] = [], plugins: [PluginUsage] = []
    ) -> Target {
        .target(
            name: name,
            dependencies: dependencies.map { .byName(name: $0) } + logging(logs) + products,
            path: "Sources/\(floor)/\(name)", swiftSettings: .house, plugins: plugins)
    }

    static func tests(_ name: String, _ dependencies: [String], logs: Bool = false) -> Target {
        .testTarget(
            name: name, dependencies: dependencies.map { .byName(name: $0) } + logging(logs),
            path: "Tests/\(name)", swiftSettings: .house)
    }

    private static func logging(_ logs: Bool) -> [Target.Dependency] {
        logs ? [.product(name: "Logging", package: "swift-log")] : []
    }
}

extension [SwiftSetting] {
    /// What every target of ours is compiled with.
    static var house: [SwiftSetting] {
        [
            .treatAllWarnings(as: .error),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("MemberImportVisibility"),
        ]
    }
}
