// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import EmbeddedKafka
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Configuration
@testable internal import KafkaLog
@testable internal import Pipeline
@testable internal import Worker

/// What is counted of the records of the outcomes topic.
@Suite struct `The tally of outcomes` {
    private static func now(_ seconds: Int64) -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
            wall: WallTime(milliseconds: seconds * 1000))
    }

    @Test func `outcomes have room for so many records and bytes at Kafka's producer`() {
        var tally = OutcomeTally()
        for _ in 0..<OutcomeTally.waitingMax {
            #expect(tally.hasRoom)
            tally.offered(bytes: 100, now: Self.now(0))
        }
        #expect(!tally.hasRoom && tally.waitingBytes == 100 * OutcomeTally.waitingMax)
        tally.answered(bytes: 100, cause: nil, now: Self.now(1))
        #expect(tally.hasRoom && tally.written == 1)
        var large = OutcomeTally()
        large.offered(bytes: OutcomeTally.waitingBytesMax, now: Self.now(0))
        #expect(!large.hasRoom)
    }

    @Test func `outcomes that Kafka refuses are counted, and told of until it takes one`() {
        var tally = OutcomeTally()
        tally.offered(bytes: 10, now: Self.now(0))
        #expect(tally.trouble(now: Self.now(9)) == nil)
        #expect(tally.trouble(now: Self.now(10)) == .unanswered)
        tally.answered(bytes: 10, cause: "UNKNOWN_TOPIC_OR_PART", now: Self.now(30))
        let refused = OutcomeTally.Trouble.refused(cause: "UNKNOWN_TOPIC_OR_PART")
        #expect(tally.trouble(now: Self.now(3000)) == refused)
        #expect(tally.refused == 1 && tally.written == 0 && tally.waiting == 0)
        // What finds no room meanwhile is of the same cause.
        tally.foundNoRoom(5, now: Self.now(3000))
        #expect(tally.trouble(now: Self.now(3000)) == refused && tally.noRoom == 5)
        #expect(tally.dropped == 6)
        tally.offered(bytes: 10, now: Self.now(3001))
        tally.answered(bytes: 10, cause: nil, now: Self.now(3001))
        #expect(tally.trouble(now: Self.now(3002)) == nil)
    }

    @Test func `outcomes for which there is no room are told of for a minute`() {
        var tally = OutcomeTally()
        tally.foundNoRoom(0, now: Self.now(0))
        #expect(tally.trouble(now: Self.now(0)) == nil)
        tally.offered(bytes: 10, now: Self.now(0))
        tally.foundNoRoom(2, now: Self.now(1))
        tally.answered(bytes: 10, cause: nil, now: Self.now(2))
        #expect(tally.trouble(now: Self.now(60)) == .noRoom)
        #expect(tally.trouble(now: Self.now(61)) == nil)
        // Kafka that says nothing at all is the graver news.
        tally.offered(bytes: 10, now: Self.now(100))
        tally.foundNoRoom(1, now: Self.now(101))
        #expect(tally.trouble(now: Self.now(110)) == .unanswered)
    }
}

@Suite struct `Records of outcomes` {
    private static let at = WallTime(rfc3339: "2026-11-21T06:12:00.500Z")!

    private static var ended: EndedPush {
        var ended = EndedPush(
            push: PushDescription(
                app: "com.example.Home", environment: .production, tokenClass: .control,
                type: .controls, token: [1, 2, 3],
                apnsID: APNSID(high: 0x0123_4567_89AB_8DEF, low: 1 << 63)), outcome: .rejected)
        (ended.status, ended.reason, ended.attempts) = (400, "BadDeviceToken", 1)
        ended.writtenAt = at + .milliseconds(-412)
        ended.push.subject = Array("door \"7\"".utf8)
        ended.push.eventID = "e-1"
        ended.push.event = .init(topic: "events", partition: 3, offset: 17)
        return ended
    }

    @Test func `a record says how a push ended, and has no token`() {
        let record = OutcomeRecord(Self.ended, at: Self.at)
        #expect(record.tokenID == "039058c6f2c0cb49")
        let value = String(decoding: OutcomeEncoder.value(record), as: UTF8.self)
        #expect(
            value == #"{"v":1,"at":"2026-11-21T06:12:00.500Z","app":"com.example.Home","#
                + #""environment":"production","class":"control","type":"controls","#
                + #""tokenID":"039058c6f2c0cb49","apnsID":"01234567-89ab-8def-8000-000000000000","#
                + #""outcome":"rejected","status":400,"reason":"BadDeviceToken","attempts":1,"#
                + #""latencyMs":412,"subject":"door \"7\"","eventID":"e-1","#
                + #""source":{"topic":"events","partition":3,"offset":17}}"#)
        #expect(!value.contains("010203"))
    }

    @Test func `a record leaves out what is not known, and knows no negative time`() {
        var ended = Self.ended
        (ended.outcome, ended.status, ended.reason, ended.attempts) = (.expired, nil, "", 0)
        ended.writtenAt = Self.at + .seconds(1)
        (ended.push.subject, ended.push.eventID, ended.push.event) = ([], nil, nil)
        func value(_ ended: EndedPush) -> String {
            String(
                decoding: OutcomeEncoder.value(OutcomeRecord(ended, at: Self.at)), as: UTF8.self)
        }
        #expect(value(ended).hasSuffix(#""outcome":"expired","attempts":0,"latencyMs":0}"#))
        ended.writtenAt = nil
        #expect(value(ended).hasSuffix(#""outcome":"expired","attempts":0}"#))
    }

    // MARK: Configuration

    @Test func `outcomes are written where a topic is configured, and by no shadow`() throws {
        let off = WorkerPlan(try configuration(""))
        #expect(off.outcomesTopic == nil && !off.pipeline.notesEnds)
        let on = "{topics: {outcomes: lamplighter.outcomes}"
        let sender = try configuration("kafka: \(on)}\ndelivery: {outcomeSample: 0.5}")
        let plan = WorkerPlan(sender)
        #expect(plan.outcomesTopic == "lamplighter.outcomes" && plan.pipeline.notesEnds)
        #expect(plan.pipeline.live.outcomeSample == OutcomeSample(share: 0.5))
        #expect(!plan.producedTopics.contains("lamplighter.outcomes"), "no offset waits for it")
        let needed = RequiredTopic.all(of: sender).first { $0.name == "lamplighter.outcomes" }
        #expect(needed?.configuration == ["cleanup.policy": "delete"])
        let shadow = try configuration("kafka: \(on), group: my-shadow}\ndelivery: {mode: shadow}")
        #expect(WorkerPlan(shadow).outcomesTopic == nil && !WorkerPlan(shadow).pipeline.notesEnds)
        #expect(!RequiredTopic.all(of: shadow).contains { $0.name == "lamplighter.outcomes" })
    }

    @Test func `the topic of outcomes is a topic of its own`() {
        let error = #expect(throws: InvalidConfiguration.self) {
            _ = try configuration("kafka: {topics: {outcomes: lamplighter.dead-letters}}")
        }
        #expect(
            error?.problems.map(\.description).contains {
                $0.contains("kafka.topics.outcomes")
                    && $0.contains("as is kafka.topics.deadLetters")
            } == true)
    }

    // MARK: What is said

    @Test func `a status says how many outcomes were written and dropped, and why`() {
        var status = WorkerStatus.well()
        status.outcomes = .init(topic: "lamplighter.outcomes", written: 1204, noRoom: 0, refused: 0)
        #expect(
            StatusReport(status).lines.contains(
                "outcomes     lamplighter.outcomes: 1,204 written"))
        #expect(StatusReport(status).summary == "All is well.")
        status.outcomes?.refused = 12
        status.outcomes?.trouble = .refused(cause: "UNKNOWN_TOPIC_OR_PART")
        let report = StatusReport(status)
        #expect(
            report.lines.contains(
                "outcomes     lamplighter.outcomes: 1,204 written, 12 dropped"))
        #expect(
            report.summary
                == "Outcomes of pushes are not written, and 12 have been dropped: Kafka says "
                + "UNKNOWN_TOPIC_OR_PART. Pushes go on without them; create the topic (lamplighter "
                + "topics create), give this user WRITE on it, or restore its leaders.")
        #expect(report.problems.map(\.severity) == [.warning])
    }
}

/// The planner with a real producer of outcomes. The script plays APNs.
@Suite(.serialized) struct `A planner that tells of outcomes` {
    private static let yaml = "delivery: {outcomeSample: 1}"

    @Test func `a planner writes how pushes end, those that APNs accepts and those that fail`()
        async throws
    {
        let script = try PlannerScript(Self.yaml, outcomes: "lamplighter.outcomes")
        try await script.start([(PlannerScript.plain, 0)])
        for (subject, status) in [("s1", 200), ("s2", 400)] as [(String, UInt16)] {
            try script.event(subject)
            try await script.until("the push about \(subject)") { script.inFlight == 1 }
            for port in script.ports.indices { script.answer(port, status: status) }
        }
        try await script.until("the records") { script.loop.outcomes!.tally.written == 2 }
        #expect(script.status.outcomes?.written == 2 && script.status.outcomes?.dropped == 0)
    }

    @Test func `a planner commits and sends on while Kafka refuses the outcomes, and says so`()
        async throws
    {
        let script = try PlannerScript(Self.yaml, outcomes: "lamplighter.outcomes")
        try await script.start([(PlannerScript.plain, 0)])
        try script.event("s1")
        try script.event("s2")
        try await script.until("the pushes") { script.inFlight == 2 }
        // TOPIC_AUTHORIZATION_FAILED on Produce.
        try script.kafka.perform(.fail(apiKey: 0, code: 29, count: 1000))
        script.answerAll()
        try await script.until("the offset") { script.position(PlannerScript.plain) == 2 }
        try await script.until("the refusals") { script.loop.outcomes!.tally.refused == 2 }
        #expect(script.accepted == 2)
        #expect(
            script.status.outcomes?.trouble == .refused(cause: "TOPIC_AUTHORIZATION_FAILED"))
        script.passed += .seconds(10)
        try await script.until("the line") {
            script.lines.taken().contains { $0.contains("outcomes of pushes are not written") }
        }
    }
}
