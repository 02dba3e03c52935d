// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import OpenSSL
import PushModel
import TestCertificates
import Testing

/// What an operator is told: what is wrong, what to do, and the exit code of DESIGN's list.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `The command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    // MARK: check

    @Test func `check says that all is well, and of what`() async throws {
        let result = try await fleet.command(["check"])
        #expect(result.status == 0)
        #expect(!result.output.contains("wrong"))
        for line in ["configuration", "signing keys", "Kafka and its topics"] {
            #expect(result.output.contains("ok      \(line)"))
        }
        for environment in ["production", "development"] {
            for credential in ["home", "other"] {
                #expect(
                    result.output.split(separator: "\n").contains {
                        $0.hasPrefix("ok      APNs \(environment) (127.0.0.1:")
                            && $0.hasSuffix("credential '\(credential)'")
                    })
            }
        }
    }

    @Test(arguments: [
        ["explain", "--subjct", "door"], ["register", "--instalation", "6F1C"],
        ["registrations", "forget", "--instalation", "6F1C"],
        ["suppressions", "revoke", "--tokenid", "3f2a000000000000"],
    ])
    func `an unknown option is named where something is missing, too`(
        arguments: [String]
    ) async throws {
        let result = try await fleet.run(arguments)
        #expect(result.status == 64)
        result.expect("Unknown option '\(arguments[arguments.count - 2])'")
    }

    @Test func `check names a topic that has been written with another partitioner`() async throws {
        // As Python's and Go's clients do, kcat chooses by CRC32.
        for number in 0..<16 {
            try await fleet.kcat(
                .suppressions, key: "no key of a suppression, \(number)", value: "{}")
        }
        let result = try await fleet.command(["check", "--skip-apns"])
        #expect(result.status == 0)
        result.expect(
            "warning of the last 100 records of each partition, ",
            " records of \(fleet.topics[.suppressions]) are not in the partitions of their keys",
            "set partitioner=murmur2_random", "ok      Kafka and its topics")
        #expect(!result.output.contains("records of \(fleet.topics[.registrations])"))
    }

    @Test func `check warns of a topic that names no app while there are several`() async throws {
        let result = try await fleet.command(
            ["check", "--skip-apns"],
            changing: ["{app: \(TestApp.home), decode: cloudevents}": "{decode: cloudevents}"])
        #expect(result.status == 0)
        result.expect(
            "warning kafka.events[\(fleet.topics[.cloudEvents])].app is not set, and ",
            "ok      configuration")
    }

    @Test func `check names a key file that cannot be read`() async throws {
        let missing = try await fleet.command(
            ["check"], changing: ["HOMEKEY001.p8": "AuthKey_GONE.p8"])
        #expect(missing.status == 78)
        missing.expect(
            "apns.credentials.home.keyFile", "AuthKey_GONE.p8, which does not exist", "name a file")

        let file = fleet.directory.appending(path: "text.p8")
        try "not a key".write(to: file, atomically: true, encoding: .utf8)
        let text = try await fleet.command(["check"], changing: ["HOMEKEY001.p8": "text.p8"])
        #expect(text.status == 78)
        text.expect(
            "apns.credentials.home", ".p8", "unusable",
            "it is not PEM, which has a line -----BEGIN PRIVATE KEY-----")
        #expect(!text.output.contains("routines"))
    }

    @Test func `check names a key on the wrong curve`() async throws {
        let made = try await fleet.run(
            [
                "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt",
                "ec_paramgen_curve:P-384", "-out",
                fleet.directory.appending(path: "p384.p8").path,
            ], program: "/usr/bin/env")
        try #require(made.status == 0, "\(made.output)")
        let result = try await fleet.command(["check"], changing: ["HOMEKEY001.p8": "p384.p8"])
        #expect(result.status == 78)
        result.expect("apns.credentials.home", "not on the curve P-256")
    }

    @Test(arguments: ["check", "run"])
    func `a key that nobody knows is an error with the nearest one that exists`(
        _ command: String
    ) async throws {
        let result = try await fleet.command([command], changing: ["backoffMin": "backofMin"])
        #expect(result.status == 78)
        result.expect("delivery.backofMin", "backoffMin")
        #expect(result.lines.count == 1)
    }

    @Test func `check names every topic that is missing, and how to make it`() async throws {
        let gone = ["suppressions", "deadLetters"].map { "\(fleet.topics.prefix).no-\($0)" }
        let changes = [
            "suppressions: \(fleet.topics[.suppressions])": "suppressions: \(gone[0])",
            "deadLetters: \(fleet.topics.deadLetters)": "deadLetters: \(gone[1])",
        ]
        for command in [["check", "--skip-apns"], ["topics", "check"]] {
            let result = try await fleet.command(command, changing: changes)
            #expect(result.status == 78)
            for name in gone { result.expect("wrong   \(name) ", "lamplighter topics create") }
        }
    }

    @Test func `a worker refuses to start without a topic that it writes to`() async throws {
        let gone = "\(fleet.topics.prefix).gone"
        for topic in [
            "deadLetters: \(fleet.topics.deadLetters)", "deferred: \(fleet.topics.deferred)",
        ] {
            let key = topic.prefix { $0 != ":" }
            let result = try await fleet.command(["run"], changing: [topic: "\(key): \(gone)"])
            #expect(result.status == 78)
            result.expect(
                "lamplighter: Kafka has no topic '\(gone)'", "lamplighter topics create")
            #expect(result.lines.count { $0.hasPrefix("lamplighter: ") } == 1)
        }
    }

    @Test func `check tells a credential that APNs refuses from one that it takes`() async throws {
        // The key of another team under the name of ours.
        let result = try await fleet.command(
            ["check"], changing: ["HOMEKEY001.p8": "OTHERKEY01.p8"])
        #expect(result.status == 78)
        result.expect(
            "wrong   APNs production (127.0.0.1:", "refuses credential 'home'",
            "InvalidProviderToken", "check the credential's key, key ID, team and environments")
        #expect(result.output.contains("credential 'other'"))
        #expect(!result.output.contains("refuses credential 'other'"))
    }

    @Test func `a worker that may map too little memory says so and does not start`() async throws {
        let program = try Fleet.program
        let run = "exec '\(program)' run --config '\(fleet.configurationFile.path)'"
        let result = try await fleet.run(
            ["-c", "ulimit -v 1500000; \(run)"], program: "/bin/sh")
        #expect(result.status == 78)
        result.expect("lamplighter: the address space is limited to 1464 MiB by ulimit -v")
        #expect(result.lines.count { $0.hasPrefix("lamplighter: ") } == 1)
    }

    /// Side by side, since each of them waits before it gives up.
    @Test func `who cannot be reached at the start is named, with 69`() async throws {
        let kafka = ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"]
        async let checkOfKafka = fleet.command(["check", "--skip-apns"], changing: kafka)
        async let run = fleet.command(["run"], changing: kafka)
        async let checkOfAPNS = fleet.command(
            ["check"],
            changing: [
                "port: \(fleet.simulator.port(of: .production)!),": "port: 1,",
                "apps: [\(TestApp.other)]\n      environments: [production, development]":
                    "apps: [\(TestApp.other)]\n      environments: [development]",
            ])
        for result in [try await checkOfKafka, try await run] {
            #expect(result.status == 69)
            result.expect("Kafka does not answer", "check kafka.bootstrap")
        }
        #expect(try await run.lines.count { $0.hasPrefix("lamplighter: ") } == 1)
        let apns = try await checkOfAPNS
        #expect(apns.status == 69)
        apns.expect(
            "ok      Kafka", "wrong   APNs production (127.0.0.1:1) takes no connection",
            "apns.endpoints")
        // Its own lines say it all; the log's are not among them.
        for line in apns.lines {
            #expect(["ok      ", "wrong   ", "warning "].contains(line.prefix(8)), "\(line)")
        }
    }

    @Test func `check tells certificates that cannot be verified from an APNs that is away`()
        async throws
    {
        let stranger = fleet.directory.appending(path: "stranger.pem")
        try CertificateAuthority(name: "Another").certificatePEM.write(
            to: stranger, atomically: true, encoding: .utf8)
        let caFile = "caFile: \(fleet.directory.appending(path: "ca.pem").path)"
        async let empty = fleet.command(["check"], changing: [caFile: "caFile: /etc/passwd"])
        async let untrusted = fleet.command(
            ["check"], changing: [caFile: "caFile: \(stranger.path)"])
        for (result, words) in [
            (try await empty, "cannot be verified: apns.caFile must name a readable PEM file"),
            (try await untrusted, "shows a certificate that no trusted authority has signed"),
        ] {
            #expect(result.status == 78)
            result.expect("wrong   APNs production", words)
        }
    }

    @Test func `check names a token endpoint that gives no token, not Kafka`() async throws {
        let secret = "swordfish"
        let result = try await fleet.command(
            ["check", "--skip-apns"],
            changing: [
                "fetch.wait.max.ms: 5": """
                fetch.wait.max.ms: 20
                    security.protocol: SASL_PLAINTEXT
                    sasl.mechanisms: OAUTHBEARER
                    sasl.oauthbearer.method: oidc
                    sasl.oauthbearer.token.endpoint.url: http://127.0.0.1:1/token
                    sasl.oauthbearer.client.id: lamplighter
                    sasl.oauthbearer.client.secret: \(secret)
                """
            ])
        #expect(result.status == 69)
        result.expect(
            "ok      signing keys",
            "wrong   Kafka requires a token, and the token endpoint http://127.0.0.1:1/token takes no "
                + "connection: check sasl.oauthbearer.token.endpoint.url")
        #expect(!result.output.contains("Kafka does not answer"))
        #expect(!result.output.contains(secret))
    }

    // MARK: The others

    @Test func `topics check is content with what the fleet was given`() async throws {
        let result = try await fleet.command(["topics", "check"])
        #expect(result.status == 0)
        for topic in [fleet.topics[.events], fleet.topics[.suppressions], fleet.topics.deadLetters]
        {
            #expect(result.lines.contains("ok      \(topic)"))
        }
    }

    @Test(.enabled(if: Fleet.testBootstrap == nil))
    func `topics create says what the embedded Kafka has, and how to give it the rest`()
        async throws
    {
        let all = try await fleet.command(["topics", "create"])
        #expect(all.status == 0)
        all.expect("exists  \(fleet.topics[.events])", "exists  \(fleet.topics.deadLetters)")
        let gone = "\(fleet.topics.prefix).gone"
        let some = try await fleet.command(
            ["topics", "create"],
            changing: ["deadLetters: \(fleet.topics.deadLetters)": "deadLetters: \(gone)"])
        #expect(some.status == 69)
        some.expect("lamplighter-lab simulate kafka --topics \(gone):12")
        #expect(some.lines.count { $0.hasPrefix("lamplighter: ") } == 1)
    }

    @Test(.enabled(if: Fleet.testBootstrap != nil))
    func `topics create makes what topics check then accepts`() async throws {
        let names = [fleet.topics[.events], fleet.topics[.suppressions], fleet.topics.deadLetters]
        var changes: [String: String] = [:]
        for name in names { changes[name] = name + "-made" }
        let before = try await fleet.command(["topics", "check"], changing: changes)
        #expect(before.status == 78)
        let made = try await fleet.command(
            ["topics", "create", "--partitions", "2"], changing: changes)
        #expect(made.status == 0)
        for name in names { made.expect("created \(name)-made") }
        made.expect("exists  \(fleet.topics[.registrations])")
        let again = try await fleet.command(
            ["topics", "create", "--wait", "10s"], changing: changes)
        #expect(again.status == 0)
        for name in names { again.expect("exists  \(name)-made") }
        let after = try await fleet.command(["topics", "check"], changing: changes)
        #expect(after.status == 0, "\(after.output)")
    }

    @Test(.enabled(if: Fleet.testBootstrap != nil))
    func `check names a wrong cleanup policy, and what it costs`() async throws {
        let (events, suppressions) = (fleet.topics[.events], fleet.topics[.suppressions])
        // Each in the other's place.
        let result = try await fleet.command(
            ["check", "--skip-apns"],
            changing: [
                "suppressions: \(suppressions)": "suppressions: \(events)",
                "\(events): {": "\(suppressions): {",
            ])
        #expect(result.status == 78)
        result.expect(
            "\(events) has cleanup.policy=delete, and must have compact",
            "\(suppressions) has cleanup.policy=compact, and must have delete")
    }

    @Test(.enabled(if: Fleet.testBootstrap != nil), arguments: ["registrations", "restrictions"])
    func `a worker does not start on a topic of which Kafka deletes what is in effect`(
        key: String
    ) async throws {
        // Each in the other's place: a topic of events cannot be another one as well.
        let (events, table) = (fleet.topics[.events], fleet.topics.name(of: key))
        let result = try await fleet.command(
            ["run"],
            changing: ["\(key): \(table)": "\(key): \(events)", "\(events): {": "\(table): {"])
        #expect(result.status == 78)
        result.expect(
            "\(events) has cleanup.policy=delete, and must have compact",
            "--entity-name \(events) --add-config cleanup.policy=compact")
    }

    @Test func `check does not wait where all is well`() async throws {
        let result = try await fleet.command(["check", "--skip-apns", "--wait", "60s"])
        #expect(result.status == 0)
        result.expect("ok      Kafka and its topics")
        #expect(!result.output.contains("waiting"))
    }

    @Test(.enabled(if: Fleet.testBootstrap == nil))
    func `check waits for a topic that is missing, and says so once`() async throws {
        let start = ContinuousClock.now
        let gone = "\(fleet.topics.prefix).gone"
        let result = try await fleet.command(
            ["check", "--skip-apns", "--wait", "3s"],
            changing: ["deadLetters: \(fleet.topics.deadLetters)": "deadLetters: \(gone)"])
        #expect(ContinuousClock.now - start >= .seconds(3))
        #expect(result.status == 78)
        #expect(result.lines.count { $0.hasPrefix("waiting \(gone) is missing: create it") } == 1)
        result.expect("wrong   \(gone) is missing")
    }

    @Test func `check --wait keeps its time, and tells at once what it waits for`() async throws {
        let configuration = try fleet.configuration(changing: [
            "bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"
        ])
        let waiting = try FleetProcess(
            "waiting-check", program: try Fleet.program,
            arguments: ["check", "--skip-apns", "--wait", "600s", "--config", configuration.path],
            log: fleet.directory.appending(path: "waiting-check.log").path)
        defer { waiting.signal(SIGKILL) }
        try await waitUntil("the reason, while it waits") {
            waiting.output.contains("waiting Kafka does not answer")
        }
        #expect(!waiting.output.contains("FAIL"))

        // A single look without --wait has 10 s.
        let stopwatch = Stopwatch()
        let result = try await fleet.command(
            ["check", "--skip-apns", "--wait", "2s"],
            changing: ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"])
        #expect(stopwatch.time < .seconds(9))
        #expect(result.status == 69)
        result.expect("wrong   Kafka does not answer")
    }

    @Test func `check does not wait for what no waiting mends`() async throws {
        let stopwatch = Stopwatch()
        let result = try await fleet.command(
            ["check", "--skip-apns", "--wait", "600s"],
            changing: ["fetch.wait.max.ms": "fetch.wait.most.ms"])
        #expect(stopwatch.time < .seconds(300))
        #expect(result.status == 78)
        #expect(!result.output.contains("waiting"))
    }

    @Test func `the first line of run says what runs, to whom, and as which worker`() async throws {
        // It waits for its Kafka, and is ended before that answers.
        let configuration = try fleet.configuration(changing: [
            "bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1",
            "format: text": "format: json",
        ])
        let worker = try FleetProcess(
            "first-line", program: try Fleet.program,
            arguments: ["run", "--config", configuration.path],
            log: fleet.directory.appending(path: "first-line.log").path)
        defer { worker.signal(SIGKILL) }
        try await waitUntil("the first line") {
            worker.output.contains("\n")
        }
        struct Line: Decodable {
            struct Metadata: Decodable {
                var version, commit, configuration, worker, group, transport: String
                var apps: [String]
                var libraries: [String: String]
            }
            var time, level, worker, version, group, message: String
            var metadata: Metadata
        }
        let line = try JSONDecoder().decode(
            Line.self, from: Data(try #require(worker.output.split(separator: "\n").first).utf8))
        #expect(WallTime(rfc3339: line.time) != nil, "\(line.time)")
        #expect(line.message == "starting")
        #expect(line.group == fleet.topics.prefix && line.metadata.group == line.group)
        #expect(line.worker.contains(#/^.+-\d+$/#) && line.metadata.worker == line.worker)
        #expect(line.version == line.metadata.version)
        #expect(line.metadata.configuration.hasSuffix(".yaml"))
        #expect(Set(line.metadata.apps).isSuperset(of: [TestApp.home, TestApp.other]))
        #expect(
            Set(line.metadata.libraries.keys) == ["librdkafka", "nghttp2", "OpenSSL", "libcurl"])
        #expect(line.metadata.transport == "nghttp2")
    }

    @Test func `--version names the commit and the libraries that are loaded`() async throws {
        let result = try await fleet.run(["--version"])
        #expect(result.status == 0)
        let lines = result.lines.map(String.init)
        #expect(lines.count == 5)
        #expect(
            lines.first?.wholeMatch(
                of: #/lamplighter \d+\.\d+\.\d+ \(([0-9a-f]{7,}(-dirty)?|unknown)\)/#) != nil)
        for (line, library) in zip(
            lines.dropFirst(), ["librdkafka", "nghttp2", "OpenSSL", "libcurl"])
        {
            #expect(line.hasPrefix("\(library) "))
            #expect(line.contains(#/ \d+\.\d+\.\d+/#))
        }
    }

    @Test(arguments: [
        (["run", "--nonsense"], "run"), (["nonsense"], "<subcommand>"),
        (["push", "--app", "com.example.Home"], "push"),
        (["topics", "create", "--partitions", "0"], "topics create"),
        (["topics", "create", "--replication-factor", "0"], "topics create"),
        (["registrations", "forget", "--subject", ""], "registrations forget"),
        (["registrations", "forget", "--installation", ""], "registrations forget"),
        (
            [
                "register", "--environment", "nowhere", "--app", "a", "--installation", "i",
                "--handler", "h",
            ], "register"
        ),
        (["register", "--file", "x.json", "--remove"], "register"),
        (["emit", "--collapse-id", "a", "door-1"], "emit"),
        (["emit", "--installation", "6F1C", "door-1"], "emit"),
    ])
    func `a slip on the command line is 64, with the usage of its command`(
        _ arguments: [String], _ command: String
    ) async throws {
        let result = try await fleet.run(arguments)
        #expect(result.status == 64)
        result.expect("Error: ", "Usage: lamplighter \(command)")
    }

    @Test(arguments: [
        (["simulate", "kafka", "--topics", "no-count"], "simulate kafka"),
        (["demo", "--duration", "15x"], "demo"),
        (["demo", "--duration", "2s"], "demo"),
        (["verify"], "verify"),
    ])
    func `a slip on the lab's command line is 64, with the usage of its command`(
        _ arguments: [String], _ command: String
    ) async throws {
        let result = try await fleet.run(arguments, program: try Fleet.lab)
        #expect(result.status == 64)
        result.expect("Error: ", "Usage: lamplighter-lab \(command)")
    }

    /// By their symbols, of which a build for tests keeps all.
    @Test func `the worker's program links no simulator, no demo and no checker`() throws {
        let worker = try Data(
            contentsOf: URL(filePath: Fleet.program), options: .alwaysMapped)
        let lab = try Data(
            contentsOf: URL(filePath: Fleet.lab), options: .alwaysMapped)
        for module in ["APNSSimulator", "EmbeddedKafka", "TestCertificates", "Demo", "Checker"] {
            // As the compiler writes a module's name: its length first.
            let symbol = Data("$s\(module.utf8.count)\(module)".utf8)
            #expect(lab.range(of: symbol) != nil, "\(module)")
            #expect(worker.range(of: symbol) == nil, "\(module)")
        }
    }

    @Test(arguments: [
        ["demo", "--duration", "5"], ["simulate", "apns", "--help"], ["chaos"], ["help", "demo"],
    ])
    func `a command that is the lab's says so in one line, with 64`(
        _ arguments: [String]
    ) async throws {
        let result = try await fleet.run(arguments)
        #expect(result.status == 64)
        let name = arguments.first { $0 != "help" }!
        #expect(
            result.lines == [
                "lamplighter: '\(name)' is a command of lamplighter-lab: lamplighter-lab \(name)"
            ])
    }

    @Test func `a simulator's port that is taken is named, with 78`() async throws {
        let port = try #require(fleet.simulator.port(of: .production))
        let result = try await fleet.run(
            ["simulate", "apns", "--port", "\(port)"], program: try Fleet.lab)
        #expect(result.status == 78)
        #expect(
            result.lines == [
                "lamplighter-lab: port \(port) on 127.0.0.1 is taken: name another, or 0 for any that is free"
            ])
    }
}
