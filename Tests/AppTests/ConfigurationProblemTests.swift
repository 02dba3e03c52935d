// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing
import Worker

@testable import Configuration

@Suite struct `Configuration problems` {
    @Test func `all problems are reported at once, each with its place and a remedy`() {
        let found = problems(
            in: """
                kafka:
                  group: "a b"
                  bootstap: kafka:9092
                delivery: {shutdownTimeout: 1h, threads: [2]}
                apns: {credentials: {work: {team: abc, keyFile: nowhere.p8}}}
                """, ["LAMPLIGHTER_LOG_LEVEL": "loud"], without: ["KAFKA_BOOTSTRAP"])
        #expect(
            found == [
                "kafka.bootstrap: is missing; must be host:port, several joined by commas",
                #"kafka.group (line 2): is "a b"; must be 1 to 249 of A-Z a-z 0-9 . _ -"#,
                #"kafka.bootstap (line 3): is no key of this section; "#
                    + #"did you mean "bootstrap"?"#,
                #"delivery.threads (line 4): is a list; must be a whole number from 1 to 64"#,
                #"delivery.shutdownTimeout (line 4): is "1h"; must be a duration from 1s to 10m"#,
                #"apns.credentials.work.team (line 5): is "abc"; "#
                    + "must be the 10 capital letters and digits that Apple shows",
                "apns.credentials.work.apps: is missing; "
                    + "must be a list, each a bundle identifier: 1 to 128 of A-Z a-z 0-9 . -",
                #"log.level (LAMPLIGHTER_LOG_LEVEL): is "loud"; "#
                    + "must be one of trace, debug, info, notice, warning, error, critical",
                "apns.credentials.work.keyID: is missing; give the 10 characters that Apple shows, "
                    + "or keep the file's name AuthKey_<key ID>.p8",
                "apns.credentials.work.keyFile: is nowhere.p8, which does not exist; "
                    + "name a file; the path is relative to the configuration file's folder",
            ])
    }

    @Test(arguments: [
        ("delivery: {treads: 2}", "delivery.treads", #"did you mean "threads"?"#),
        ("delivery: {ATTEMPTSMAX: 2}", "delivery.ATTEMPTSMAX", #"did you mean "attemptsMax"?"#),
        ("attemptsMax: 2", "attemptsMax", "did you mean delivery.attemptsMax?"),
        ("planing: {}", "planing", #"did you mean "planning"?"#),
        (
            "log: {file: x}", "log.file",
            #"the nearest known one is "level", all are in docs/configuration.md"#
        ),
        (
            "kafka: {events: {doors: {topic: x}}}", "kafka.events.doors.topic",
            #"the nearest known one is "app", all are in docs/configuration.md"#
        ),
        (
            "planning: {wire: {alerts: {priority: 5}}}", "planning.wire.alerts",
            #"did you mean "alert"?"#
        ),
    ])
    func `an unknown key names the nearest known one`(yaml: String, key: String, remedy: String) {
        #expect(problems(in: yaml) == ["\(key) (line 1): is no key of this section; \(remedy)"])
    }

    @Test(arguments: [
        ("kafka: [", "line 2: the file is not YAML"), ("- a", "line 1: the file holds a list"),
        ("kafka: {}\nkafka: {}", "line 1: this map has kafka twice"),
        ("kafka: 7", "kafka (line 1): is a single value; must be a map of names and values"),
        ("? [a]\n: b", "line 1: the file has a key that is not text"),
    ])
    func `a file that is no map of maps is refused`(yaml: String, start: String) {
        let found = problems(in: yaml)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(start) == true, "\(found)")
    }

    @Test func `aliases that unfold without end are refused`() {
        var yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...6 {
            let row = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            yaml += "a\(level): &a\(level) [\(row)]\n"
        }
        #expect(problems(in: yaml).first?.contains("unfolds to more than 50000 values") == true)
    }

    @Test func `a secret in the file is refused and not repeated`() {
        let yaml = """
            kafka: {properties: {sasl.password: "hunter2\\0"}}
            apns:
              proxy: ftp://user:hunter2@proxy
              credentials: {work: {key: hunter2, keyFile: "-----BEGIN PRIVATE KEY-----hunter2"}}
            """
        let found = problems(in: yaml)
        #expect(found.contains { $0.contains("work.key (line 4): is a secret and may not be") })
        #expect(found.contains { $0.contains("apns.proxy (line 3): cannot be read") })
        #expect(found.contains { $0.contains("kafka.properties[sasl.password] (line 1)") })
        #expect(found.contains { $0.contains("work.keyFile (line 4)") })
        #expect(!found.joined().contains("hunter2"))
    }

    @Test func `a file that does not exist is one clear line`() {
        #expect {
            _ = try Configuration.load(file: "nowhere.yaml", environment: [:])
        } throws: {
            "\($0)" == "nowhere.yaml: the configuration file does not exist; "
                + "name another, or see docs/configuration.md"
        }
    }

    @Test func `a text with braces that are no template is refused`() {
        for template in ["{", "order-{id}", "{key", "}", "{header:}", "{{key}}"] {
            let found = problems(in: "kafka: {events: {doors: {subject: \"\(template)\"}}}")
            #expect(found.count == 1, "\(template)")
        }
        for template in ["{key}", "a-{key}", "{header:x-id}/{/a/b~1c}", "{/}"] {
            #expect(problems(in: "kafka: {events: {d: {subject: \"\(template)\"}}}") == [])
        }
    }
}

@Suite struct `Configuration cross checks` {
    @Test(arguments: [
        (
            "kafka: {topics: {suppressions: lamplighter.registrations}}",
            "kafka.topics.suppressions: is lamplighter.registrations, "
                + "as is kafka.topics.registrations; give each a topic of its own"
        ),
        (
            "kafka: {topics: {deferred: lamplighter.events}}",
            "kafka.topics.deferred: is lamplighter.events, which is an event topic too; "
                + "give each a topic of its own"
        ),
        (
            "kafka: {events: {}}",
            "kafka.events: has no topic; "
                + "name one, or leave the key out to read lamplighter.events"
        ),
        (
            "kafka: {skip: [other/0/1]}",
            "kafka.skip: names other, which is no event topic; take the topic from kafka.events"
        ),
        (
            "kafka: {events: {doors: {app: com.example.Hom}}}",
            "kafka.events.doors.app: is com.example.Hom, which no credential signs for; "
                + "add it to a credential's apps; the nearest there is com.example.Home"
        ),
        (
            "kafka: {events: {doors: {decode: key, subject: \"{/id}\"}}}",
            "kafka.events.doors.subject: has a JSON pointer, but decode is key; "
                + "set decode to json, or use {key} and {header:name} only"
        ),
        (
            "kafka: {events: {doors: {ttl: 5s, delay: 5s}}}",
            "kafka.events.doors.delay: is 5s, and the push is dead after 5s; "
                + "make the delay shorter or the ttl longer"
        ),
        (
            "kafka: {properties: {client.id: home}}",
            "kafka.properties[client.id]: has a key of its own; set kafka.clientID"
        ),
        (
            "kafka: {properties: {group.id: home}}",
            "kafka.properties[group.id]: cannot be set; set kafka.group instead"
        ),
        (
            "kafka: {properties: {sasl.mechanics: PLAIN}}",
            "kafka.properties[sasl.mechanics]: is no property of librdkafka; check its spelling; "
                + "the nearest there is sasl.mechanism"
        ),
        (
            "apns: {transport: nghttp2, proxy: \"http://proxy:3128\"}",
            "apns.transport: is nghttp2, which knows no proxy; "
                + "set it to auto or curl, or leave out apns.proxy"
        ),
        (
            "apns: {proxy: \"http://user:hunter%0a2@proxy:3128\"}",
            "apns.proxy: is nothing that libcurl understands; give it a port of 1 to 65535 and no "
                + "control character, percent-encoded or not"
        ),
        (
            "planning: {wire: {background: {priority: 10}}}",
            "planning.wire.background.priority: is 10, which APNs refuses for background "
                + "pushes; set it to 5, 1 or none"
        ),
        (
            "apns: {reconnectMin: 2s, reconnectMax: 1s}",
            "apns.reconnectMin: is 2s, above apns.reconnectMax, which is 1s; "
                + "lower the one or raise the other"
        ),
        (
            "delivery: {backoffMin: 2s, backoffMax: 1s}",
            "delivery.backoffMin: is 2s, above delivery.backoffMax, which is 1s; "
                + "lower the one or raise the other"
        ),
        (
            "delivery: {cooldownMin: 2s, cooldownMax: 1s}",
            "delivery.cooldownMin: is 2s, above delivery.cooldownMax, which is 1s; "
                + "lower the one or raise the other"
        ),
    ])
    func `keys that contradict each other are refused`(yaml: String, problem: String) {
        #expect(problems(in: yaml) == [problem])
    }

    @Test func `one credential at most signs for an app in an environment`() {
        let second = "LAMPLIGHTER_APNS_CREDENTIALS_WORK_"
        var variables = [
            second + "TEAM": "ABCDE12345", second + "KEYID": "KLMNO12345", second + "KEY": "text",
            second + "APPS": "com.example.Work,com.example.Home",
            second + "ENVIRONMENTS": "development",
        ]
        #expect(
            problems(in: "", variables) == [
                "apns.credentials.work.apps: has com.example.Home in development, "
                    + "which home signs for too; keep it in one of them"
            ])
        variables["LAMPLIGHTER_APNS_CREDENTIALS_HOME_ENVIRONMENTS"] = "production"
        #expect(problems(in: "", variables) == [])
        #expect(
            problems(in: "kafka: {events: {doors: {decode: key}}}", variables) == [
                "kafka.events.doors.app: is missing, and decode: key leaves no other place for "
                    + "it; name one of the 2 configured apps"
            ])
    }

    @Test func `there is a credential, with one key and some app and environment`() {
        let home = "apns.credentials.home."
        #expect(
            problems(in: "kafka: {bootstrap: k}", without: leastNames) == [
                "apns.credentials: is missing; "
                    + "add a credential with team, keyID, keyFile and apps"
            ])
        #expect(
            problems(without: ["APNS_CREDENTIALS_HOME_KEY"]) == [
                home + "keyFile: is missing; "
                    + "set one of keyFile, keyFolder, providerTokenFile and "
                    + "LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEY"
            ])
        #expect(
            problems(in: "apns: {credentials: {home: {environments: []}}}") == [
                home + "environments: is empty; name production, development or both"
            ])
    }

    @Test(arguments: [
        (
            "keyFile: AuthKey_AAAAAAAAAA.p8", "keyID",
            "is FGHIJ67890, and the file is named for AAAAAAAAAA"
        ),
        ("nextKeyFile: next.p8", "nextKeyID", "is missing"),
        ("nextKeyID: BBBBBBBBBB", "nextKeyID", "is set without nextKeyFile"),
        ("keyFolder: /nowhere/keys", "keyFolder", "is set, and so is key"),
        ("keyFolder: /nowhere/keys", "keyFolder", "is no folder that can be read"),
        ("providerTokenFile: token", "providerTokenFile", "is set, and so is key"),
        ("providerTokenFile: token, keyFile: key.p8", "keyFile", "and so is providerTokenFile"),
        ("providerTokenFile: /nowhere/token", "providerTokenFile", "which does not exist"),
    ])
    func `a key and its identifier go together`(line: String, key: String, wrong: String) {
        let found = problems(
            in: "apns: {credentials: {home: {\(line)}}}",
            without: line.hasPrefix("keyFile") ? ["APNS_CREDENTIALS_HOME_KEY"] : [])
        #expect(
            found.contains { $0.hasPrefix("apns.credentials.home.\(key)") && $0.contains(wrong) },
            "\(found)")
    }

    @Test(arguments: ["keyID: BBBBBBBBBB", "nextKeyFile: next.p8", "nextKeyID: BBBBBBBBBB"])
    func `a provider token of another service has no key beside it`(line: String) {
        let key = line.prefix { $0 != ":" }
        let found = problems(
            in: "apns: {credentials: {home: {providerTokenFile: token, \(line)}}}",
            without: ["APNS_CREDENTIALS_HOME_KEY", "APNS_CREDENTIALS_HOME_KEYID"])
        #expect(
            found.contains {
                $0.hasPrefix("apns.credentials.home.\(key)")
                    && $0.contains(
                        "is set, and so is providerTokenFile; leave it out: each provider token "
                            + "names the key that has signed it")
            }, "\(found)")
    }

    @Test func `the files are there, readable, and a key is not everyone's to replace`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("configuration-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ name: String, _ text: String, mode: Int) throws -> String {
            let file = folder.appendingPathComponent(name)
            try text.write(to: file, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: file.path)
            return file.path
        }
        let key = try write("key.p8", "key", mode: 0o644)
        let yaml = """
            kafka: {bootstrap: kafka}
            apns:
              caFile: roots.pem
              credentials:
                home: {team: ABCDE12345, keyID: FGHIJ67890, keyFile: key.p8, apps: [a]}
            """
        let file = try write("lamplighter.yaml", yaml, mode: 0o644)
        let load = { () -> [String] in
            do {
                let read = try Configuration.load(file: file, environment: [:])
                #expect(read.apns.credentials["home"]?.keyFile == key)
                return []
            } catch let error as InvalidConfiguration {
                return error.problems.map(\.description)
            }
        }
        #expect(
            try load() == [
                "apns.caFile: is \(folder.path)/roots.pem, which does not exist; "
                    + "name a file; the path is relative to the configuration file's folder"
            ])
        _ = try write("roots.pem", "roots", mode: 0o644)
        #expect(try load() == [])
        _ = try write("key.p8", "key", mode: 0o646)
        #expect(
            try load() == [
                "apns.credentials.home.keyFile: is \(key), which every user may replace; "
                    + "run chmod o-w on it"
            ])
    }

    private let leastNames = leastEnvironment.keys.map {
        String($0.dropFirst("LAMPLIGHTER_".count))
    }
}
