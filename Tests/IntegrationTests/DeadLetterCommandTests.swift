// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import KafkaLog
import Logging
import PushModel
import RecordFormats
import Testing

/// `lamplighter dead-letters` on letters that this suite writes; no worker runs.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `Dead letters on the command line` {
    private let fleet: Fleet
    private let box: OperatorTopics
    private let subject = "letter-\(UUID().uuidString)"

    init() throws {
        fleet = try #require(Fleet.current)
        box = try OperatorTopics(fleet)
    }

    private func letter(
        _ reason: String = "AttemptsExhausted", tokens: [TestToken], offset: Int64 = 7,
        suffix: String = ".push-type.controls"
    ) -> DeadLetter {
        var letter = DeadLetter(
            reason: reason,
            source: .init(topic: fleet.topics[.events], partition: 2, offset: offset),
            firstAt: WallTime(milliseconds: Now.current.wall.milliseconds - 1000),
            lastAt: Now.current.wall, attempts: 10, subject: Array(subject.utf8),
            targets: tokens.map {
                .init(
                    token: $0.bytes, environment: .production, apnsTopic: TestApp.home + suffix)
            })
        letter.app = TestApp.home
        letter.status = 503
        return letter
    }

    private func list(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(["dead-letters", "list"] + arguments)
    }

    private func redrive(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(["dead-letters", "redrive", "--subject", subject] + arguments)
    }

    // MARK: list

    @Test func `list prints a line for each letter and never a token`() async throws {
        let token = TestToken()
        try box.write(letter(tokens: [token, TestToken()]))
        var other = letter("Unregistered", tokens: [TestToken()], offset: 8)
        (other.status, other.message) = (410, "the app was removed")
        try box.write(other)
        let result = try await list("--subject", subject)
        #expect(result.status == 0)
        #expect(result.lines.count == 3)
        result.expect("Unregistered  \"the app was removed\"  status 410")
        let line = try #require(result.lines.first { $0.contains("AttemptsExhausted") })
        for word in [
            "status 503", "attempts 10", "event \(fleet.topics[.events])/2/7",
            "subject \"\(subject)\"", "tokens 2", token.name,
        ] {
            #expect(line.contains(word), "\(word) in \(line)")
        }
        let sum = "2 letters, 3 tokens; AttemptsExhausted 1; Unregistered 1; topic "
        #expect(result.lines.last.map(String.init) == sum + fleet.topics[.events] + " 2")
        #expect(!result.output.contains(token.hex))
    }

    @Test func `list --json has an object for each letter, and never a token`() async throws {
        let token = TestToken()
        try box.write(letter(tokens: [token]))
        let result = try await list("--subject", subject, "--json")
        #expect(result.lines.count == 2)
        let json = try result.objects()
        #expect(json[0]["reason"] as? String == "AttemptsExhausted")
        #expect(json[0]["subject"] as? String == subject)
        let tokens = json[0]["tokens"] as? [[String: String]]
        #expect(tokens?.first?["tokenID"] == token.name)
        #expect((json[1]["summary"] as? [String: Any])?["letters"] as? Int == 1)
        #expect(!result.output.contains(token.hex))
    }

    @Test func `what strangers chose does not reach the terminal as it is`() async throws {
        var hostile = letter("Bad\u{1B}[2J\u{202E}\n", tokens: [])
        hostile.subject = Array("a\u{1B}]0;x\u{7}\r\nb\u{9B}".utf8)
        hostile.app = subject
        hostile.message = "\u{1B}[31m"
        try box.write(hostile)
        hostile.subject = [0xFF, 0x1B, 0x41]
        try box.write(hostile)
        let result = try await list("--app", subject)
        #expect(result.lines.count == 3)
        let scalars = result.output.unicodeScalars
        #expect(scalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 && $0.value < 0x7F })
        result.expect(
            #"a\u{1b}]0;x\u{7}\u{d}\u{a}b\u{9b}"#, #"\xff\x1bA"#, #"Bad\u{1b}[2J\u{202e}\u{a}"#)
    }

    @Test func `each filter of dead letters leaves out what it does not name`() async throws {
        var old = letter("InternalServerError", tokens: [TestToken()], offset: 1)
        old.lastAt = WallTime(rfc3339: "2020-01-01T00:00:00Z")!
        let first = try box.write(old, partition: 1)
        var foreign = letter("ServiceUnavailable", tokens: [TestToken()], offset: 2)
        foreign.source.topic = fleet.topics[.orders]
        foreign.app = TestApp.other
        let second = try box.write(foreign, partition: 1)
        try box.write(letter(tokens: [TestToken()]), partition: 2)
        func count(_ arguments: String...) async throws -> Int {
            let result = try await fleet.command(
                ["dead-letters", "list", "--subject", subject] + arguments)
            #expect(result.status == 0)
            return result.lines.count - 1
        }
        #expect(try await count() == 3)
        #expect(try await count("--reason", "InternalServerError") == 1)
        let reasons = ["--reason", "InternalServerError", "--reason", "ServiceUnavailable"]
        #expect(try await count(reasons[0], reasons[1], reasons[2], reasons[3]) == 2)
        #expect(try await count("--app", TestApp.other) == 1)
        #expect(try await count("--topic", fleet.topics[.orders]) == 1)
        #expect(try await count("--since", "1h") == 2)
        #expect(try await count("--since", "2020-01-01T00:00:00Z") == 3)
        #expect(try await count("--since", "2020-01-01T00:00:01Z") == 2)
        #expect(try await count("--limit", "2") == 2)
        #expect(try await count("--partition", "1") == 2)
        #expect(try await count("--partition", "1", "--from-offset", "\(second)") == 1)
        #expect(try await count("--partition", "1", "--to-offset", "\(first)") == 1)
    }

    @Test func `a record that is no letter is counted`() async throws {
        let offset = try box.write(nil, value: Array("{".utf8), partition: 3)
        let range = ["--partition", "3", "--from-offset", "\(offset)", "--to-offset", "\(offset)"]
        let result = try await fleet.command(["dead-letters", "list"] + range)
        #expect(result.status == 0)
        #expect(result.lines == ["0 letters, 0 tokens; unreadable 1"])
    }

    // MARK: redrive

    @Test func `redrive writes a deferred push for each failing token and no other`() async throws {
        let tokens = [TestToken(), TestToken()]
        try box.write(letter(tokens: tokens))
        let before = Now.current.wall
        let result = try await redrive()
        #expect(result.status == 0)
        #expect(result.lines.first == "redriven 2 pushes and 0 unreadable events of 1 letter")
        for token in tokens {
            let key = "production/\(TestApp.home).push-type.controls/\(token.hex)"
            let records = try await box.deferred { $0.contains(token.hex) }
            #expect(records.map(\.key) == [key])
            let push = try records[0].decoded(as: WrittenPush.self)
            #expect(push.class == "control" && push.attempts == 0 && push.payload == nil)
            #expect(push.subject == subject && push.source?.offset == 7)
            let notBefore = try #require(WallTime(rfc3339: push.notBefore))
            #expect(notBefore >= before && notBefore <= Now.current.wall)
            #expect(try #require(WallTime(rfc3339: push.expiresAt)) - notBefore == .seconds(86_400))
        }
    }

    @Test func `redrive keeps a payload, and what it replaces on the device`() async throws {
        let tokens = [TestToken(), TestToken()]
        let payload = #"{"aps":{"alert":"Goal"}}"#
        var first = letter(tokens: [tokens[0]], suffix: "")
        first.original = .init(key: nil, value: Array(payload.utf8))
        first.collapseID = "score"
        try box.write(first)
        var second = letter(tokens: [tokens[1]], offset: 8, suffix: "")
        second.original = first.original
        try box.write(second)
        #expect(try await redrive("--json").status == 0)
        let event = StableHash.event(
            topicSeed: StableHash.topicSeed(fleet.topics[.events]), partition: 2, offset: 8)
        let alert = EventPayload(body: Array(payload.utf8), type: .alert)
        let expected = ["score", nil].map { collapseID in
            PayloadIdentity(alert, collapseID: collapseID, event: event)
        }
        for (token, identity) in zip(tokens, expected) {
            let record = try #require(try await box.deferred { $0.contains(token.hex) }.first)
            let digits = withUnsafeBytes(of: identity.coalescingKey.bigEndian) {
                Hexadecimal.encode($0)
            }
            #expect(record.key == "production/\(TestApp.home)/\(token.hex)/\(digits)")
            let push = try record.decoded(as: WrittenPush.self)
            #expect(push.payload?.aps.alert == "Goal" && push.class == "device")
            #expect(push.collapseID.map { Array($0.utf8) } == identity.collapseID)
            let life = WallTime(rfc3339: push.expiresAt)! - WallTime(rfc3339: push.notBefore)!
            #expect(life == .seconds(3600))
        }
    }

    @Test func `redrive --dry-run says the same and writes nothing`() async throws {
        let token = TestToken()
        try box.write(letter(tokens: [token]))
        let result = try await redrive("--dry-run")
        #expect(result.status == 0)
        #expect(result.lines.first == "would redrive 1 push and 0 unreadable events of 1 letter")
        #expect(try await box.deferred { $0.contains(token.hex) }.isEmpty)
    }

    @Test(arguments: [
        "BadDeviceToken", "DeviceTokenNotForTopic", "Forbidden", "ExpiredToken", "Unregistered",
        "PayloadTooLarge",
    ])
    func `redrive refuses what Apple forbids`(reason: String) async throws {
        let (refused, sent) = (TestToken(), TestToken())
        try box.write(letter(reason, tokens: [refused]))
        try box.write(letter("TooManyRequests", tokens: [sent], offset: 8))
        let result = try await redrive()
        #expect(result.status == 0)
        result.expect(
            "redriven 1 push and 0 unreadable events of 2 letters",
            "refused 1 of \(reason): Apple forbids another try")
        #expect(try await box.deferred { $0.contains(sent.hex) }.count == 1)
        #expect(try await box.deferred { $0.contains(refused.hex) }.isEmpty)
    }

    @Test func `a reason that neither a letter has nor anybody knows is a slip`() async throws {
        let reason = "Unheard\(UUID().uuidString)"
        try box.write(letter(reason, tokens: [TestToken()]))
        for command in ["list", "redrive"] {
            func run(_ reason: String) async throws -> CommandResult {
                try await fleet.command(["dead-letters", command, "--reason", reason])
            }
            let slip = try await run("ServiceUnavailible")
            #expect(slip.status == 64)
            slip.expect(
                "no letter has 'ServiceUnavailible'", "the nearest is ServiceUnavailable", "Usage: "
            )
            // APNs may name reasons that we have not heard of, and of ours there may be none.
            for reason in [reason, "BadPriority"] {
                #expect(try await run(reason).status == 0)
            }
        }
    }

    @Test func `redrive says what it cannot send again, and why`() async throws {
        let tokens = (0..<4).map { _ in TestToken() }
        var large = letter(tokens: [tokens[0]], suffix: "")
        large.original = .init(key: nil, value: Array(repeating: 0x20, count: 100))
        let place = try box.write(large, partition: 0)
        var unserved = letter(tokens: [tokens[1]])
        unserved.targets[0].apnsTopic = "com.example.Gone"
        try box.write(unserved)
        try box.write(letter(tokens: [tokens[2]], suffix: ".voip"))
        var damaged = letter(tokens: [tokens[3]], suffix: "")
        damaged.original = .init(key: nil, value: Array("{".utf8))
        try box.write(damaged)
        let result = try await redrive()
        #expect(result.status == 0)
        result.expect(
            "redriven 0 pushes and 0 unreadable events of 4 letters",
            "left    0/\(place) of event \(fleet.topics[.events])/2/7: the letter was written "
                + "without the event that it needs",
            "refused 1 of AttemptsExhausted: no credential serves the app",
            "refused 1 of AttemptsExhausted: APNs would not take the letter's payload",
            "refused 1 of AttemptsExhausted: tokens of this class get no such push")
        for token in tokens {
            #expect(try await box.deferred { $0.contains(token.hex) }.isEmpty)
        }
    }

    @Test func `redrive writes a record that could not be read to its topic again`() async throws {
        var unreadable = letter("invalidJSON", tokens: [])
        let value = #"{"orderId":"\#(subject)""#
        unreadable.source.topic = fleet.topics[.orders]
        unreadable.original = .init(
            key: Array("k".utf8), value: Array(value.utf8), headers: [("ce_id", [0x31])])
        try box.write(unreadable)
        var foreign = unreadable
        foreign.source.topic = "of-somebody-else"
        try box.write(foreign)
        var minimal = unreadable
        minimal.original = nil
        try box.write(minimal)
        let result = try await redrive()
        #expect(result.status == 0)
        result.expect(
            "redriven 0 pushes and 1 unreadable event of 3 letters",
            "refused 1 of invalidJSON: kafka.events does not have the event's topic",
            "refused 1 of invalidJSON: the letter was written without the event")
        let orders = try await fleet.log(of: .orders).readToEnd()
        let written = orders.filter { $0.value == value }
        #expect(written.map(\.key) == ["k"] && written.map(\.partition) == [2])
    }

    @Test func `redrive leaves a withheld event out unless its reason or its event is named`()
        async throws
    {
        let token = TestToken()
        try box.write(letter(tokens: [token]))
        var withheld = letter("fanOutTooLarge", tokens: [], offset: 8)
        let value = #"{"subject":"\#(subject)"}"#
        withheld.original = .init(key: nil, value: Array(value.utf8))
        try box.write(withheld)
        func released() async throws -> Int {
            try await box.records(of: fleet.topics[.events]).count { $0.value == value }
        }
        #expect(try await list("--subject", subject).lines.count == 3)
        let routine = try await redrive("--since", "1h")
        #expect(routine.status == 0)
        routine.expect(
            "redriven 1 push and 0 unreadable events of 1 letter",
            "left out 1 letter of withheld events: to release them use --reason "
                + "fanOutTooLarge, for one of them --event TOPIC/PARTITION/OFFSET")
        let json = try await redrive("--json", "--dry-run").objects()
        let summary = json.last?["summary"] as? [String: Any]
        #expect(summary?["withheld"] as? Int == 1 && summary?["letters"] as? Int == 1)
        #expect(try await released() == 0)
        let place = "\(fleet.topics[.events])/2/8"
        let names = [["--reason", "fanOutTooLarge"], ["--event", place]]
        for (count, name) in names.enumerated() {
            let result = try await fleet.command(
                ["dead-letters", "redrive", "--subject", subject] + name)
            // Other tests write what is no letter into the same topic.
            #expect(result.lines.first == "redriven 0 pushes and 1 unreadable event of 1 letter")
            #expect(try await released() == count + 1)
        }
    }

    @Test func `redrive keeps to its rate`() async throws {
        try box.write(letter(tokens: (0..<11).map { _ in TestToken() }))
        let start = ContinuousClock.now
        let result = try await redrive("--rate", "20/s")
        #expect(result.lines.first == "redriven 11 pushes and 0 unreadable events of 1 letter")
        #expect(start.duration(to: .now) > .milliseconds(500))
    }

    /// Side by side, since each of them waits before it gives up.
    @Test func `dead-letters without Kafka is 69`() async throws {
        let fleet = fleet
        let kafka = ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"]
        async let list = fleet.command(["dead-letters", "list"], changing: kafka)
        async let redrive = fleet.command(["dead-letters", "redrive", "--all"], changing: kafka)
        async let suppressions = fleet.command(["suppressions", "list"], changing: kafka)
        for result in [try await list, try await redrive, try await suppressions] {
            #expect(result.status == 69)
            result.expect("Kafka does not answer")
        }
    }

    @Test(arguments: [
        ["list", "--since", "yesterday"], ["list", "--limit", "0"], ["redrive"],
        ["redrive", "--all", "--limit", "1"], ["redrive", "--all", "--rate", "0/s"],
        ["redrive", "--all", "--rate", "fast"],
    ])
    func `a slip on the command line of dead-letters is 64`(_ arguments: [String]) async throws {
        let result = try await fleet.run(["dead-letters"] + arguments)
        #expect(result.status == 64)
    }
}

extension `One worker` {
    @Suite struct `obeys a redrive` {
        @Test
        func `a redrive sends to the failing token, and to nobody else who shows the subject`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let (failing, bystander) = (TestToken(), TestToken())
            let subject = "redriven-\(failing.hex.prefix(8))"
            try fleet.register(.controls([failing, bystander], show: [subject]))
            try await fleet.registrationsApplied()
            var letter = DeadLetter(
                reason: "AttemptsExhausted",
                source: .init(topic: fleet.topics[.events], partition: 0, offset: 1 << 40),
                firstAt: Now.current.wall, lastAt: Now.current.wall, attempts: 10,
                subject: Array(subject.utf8),
                targets: [
                    .init(
                        token: failing.bytes, environment: .production,
                        apnsTopic: TestApp.home + ".push-type.controls")
                ])
            letter.app = TestApp.home
            let box = try OperatorTopics(fleet)
            try box.write(letter)
            let result = try await fleet.command(
                ["dead-letters", "redrive", "--subject", subject])
            #expect(result.status == 0)
            try await fleet.eventually("the push") { fleet.accepted(failing) == 1 }
            #expect(fleet.requests(for: bystander).isEmpty)
        }
    }
}

/// What a redriven letter leaves in `deferred`.
private struct WrittenPush: Decodable {
    struct Payload: Decodable {
        struct Content: Decodable { var alert: String }
        var aps: Content
    }

    var notBefore: String
    var expiresAt: String
    var `class`: String
    var attempts: Int
    var payload: Payload?
    var collapseID: String?
    var subject: String?
    var source: DeadLetterValue.Source?
}
