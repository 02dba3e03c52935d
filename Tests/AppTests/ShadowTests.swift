// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import FleetKit
internal import Foundation
internal import Intake
internal import Lifecycle
internal import Logging
internal import PushModel
internal import Testing

@testable internal import APNSDelivery
@testable internal import Configuration
@testable internal import KafkaLog
@testable internal import Pipeline
@testable internal import Worker

/// The planner in shadow mode. The script plays the delivery threads, which accept everything.
@Suite(.serialized) struct `A shadow` {
    private static let yaml = "delivery: {mode: shadow, holdMax: 2s}"

    @Test func `a shadow reads events and makes pushes, which it counts`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(PlannerScript.plain, 0)])
        // Of different controls: a second push to one would wait for the first if that had left.
        try script.event("s1")
        try script.event("s2")
        try await script.until("the pushes") { script.inFlight == 2 }
        script.answerAll()
        try await script.until("the outcomes") { script.loop.shadow?.pushes == 2 }
        try await script.until("the offset") { script.position(PlannerScript.plain) == 2 }
        #expect(script.status.shadow?.pushes == 2)
        #expect(script.status.pushes.map(\.outcome) == ["shadowed"])
        #expect(script.lines.taken().contains { $0.contains("nothing is sent") })
    }

    @Test func `a shadow writes to no topic, and does not read what others have deferred`()
        async throws
    {
        let script = try PlannerScript(Self.yaml)
        #expect(script.loop.plan.producedTopics.isEmpty)
        #expect(script.loop.plan.consumedTopics == ["lamplighter.events", "orders"])
        try await script.start([(PlannerScript.plain, 0)])
        // A record that cannot be read would become a dead letter.
        try script.event("")
        try await script.until("the letter") { script.status.shadow?.deadLetters == 1 }
        try await script.until("the offset") { script.position(PlannerScript.plain) == 1 }
        #expect(script.loop.records.producer.outstanding == 0)
    }

    /// The pushes of a spread audience or of a gap wait for longer than an offset may.
    @Test func `a shadow holds no offset for what waits, and sends it when its time has come`()
        async throws
    {
        let script = try PlannerScript(
            Self.yaml + "\nplanning: {minimumGap: {controls: 60s}}")
        try await script.start([(PlannerScript.plain, 0)])
        try script.event("s1")
        try await script.until("the first push") { script.inFlight == 1 }
        script.answerAll()
        try await script.until("its outcome") { script.loop.shadow?.pushes == 1 }
        try script.event("s1")
        try await script.until("the offset of the second event") {
            script.passed += .milliseconds(100)
            return script.position(PlannerScript.plain) == 2
        }
        #expect(script.inFlight == 0 && script.loop.pipeline.load.deferred == 1)
        // A third event joins the push that waits.
        try script.event("s1")
        try await script.until("the offset of the third event") {
            script.passed += .milliseconds(100)
            return script.position(PlannerScript.plain) == 3
        }
        script.passed += .seconds(60)
        try await script.until("the push that has waited") { script.inFlight == 1 }
        script.answerAll()
        try await script.until("its outcome") { script.loop.shadow?.pushes == 2 }
        try await script.rest()
        #expect(script.inFlight == 0)
        #expect(script.loop.pipeline.load.deferred == 0)
    }

    @Test func `a shadow stops with its records taken`() async throws {
        let script = try PlannerScript(
            Self.yaml + "\nplanning: {minimumGap: {controls: 60s}}")
        try await script.start([(PlannerScript.plain, 0)])
        for _ in 0..<2 {
            try script.event("s1")
            try await script.until("something") {
                script.answerAll()
                return script.loop.pipeline.counters.events > 0
            }
        }
        script.control.requestStop()
        let patience = Patience()
        while script.loop.lifecycle.end == nil, !patience.isOver {
            script.answerAll()
            script.turn()
            for port in script.ports where port.currentPhase != .running && !port.hasExited {
                script.answerAll()
                if !port.hasSubmissions { port.markExited() }
            }
        }
        #expect(script.loop.lifecycle.end != nil)
    }

    // MARK: Configuration

    @Test func `a shadow has a group of its own, and nobody else has a shadow log`() throws {
        func problems(_ yaml: String) -> [String] {
            do {
                _ = try configuration(yaml)
                return []
            } catch {
                return (error as? InvalidConfiguration)?.problems.map(\.description) ?? ["\(error)"]
            }
        }
        #expect(
            problems("delivery: {mode: shadow}") == [
                "kafka.group: is lamplighter, which may be that of the workers that send, and "
                    + "delivery.mode is shadow; give the shadow a group of its own with the word shadow "
                    + "in its name, such as lamplighter-shadow"
            ])
        #expect(problems("{delivery: {mode: shadow}, kafka: {group: my-shadow}}") == [])
        let ofLog = problems("delivery: {shadowLog: x.ndjson}")
        #expect(ofLog.count == 1 && ofLog[0].contains(": is set, and delivery.mode is send"))
    }

    @Test func `a shadow needs neither the topics that it does not use nor canaries`() throws {
        let shadow = try configuration(
            """
            kafka: {group: my-shadow}
            delivery: {mode: shadow}
            canary: {every: 60s, app: com.example.Home}
            """)
        let plan = WorkerPlan(shadow)
        #expect(plan.canaryBinding == nil && plan.pipeline.canary == nil)
        #expect(plan.shardBinding == nil && plan.pipeline.live.events.leavesShards)
        let names = RequiredTopic.all(of: shadow).map(\.name)
        #expect(!names.contains("lamplighter.deferred"))
        #expect(!names.contains("lamplighter.dead-letters"))
        #expect(names.contains("lamplighter.registrations"))
        var sender = shadow
        sender.delivery.mode = .send
        #expect(RequiredTopic.all(of: sender).count == names.count + 2)
    }

    // MARK: What is said

    @Test func `a shadow says first that nothing is sent`() {
        var status = WorkerStatus.well()
        status.shadow = .init(pushes: 1204, deadLetters: 1, lines: 1203, linesLost: 1)
        let report = StatusReport(status)
        #expect(report.summary.hasPrefix("Nothing is sent: delivery.mode is shadow. "))
        #expect(
            report.lines.contains(
                "shadow       nothing is sent: 1,204 pushes and 1 dead letter would have been; 1,203 "
                    + "lines in the log, 1 line lost"), "\(report.lines)")
        status.shadow?.linesLost = 0
        #expect(
            StatusReport(status).summary
                == "Nothing is sent: delivery.mode is shadow. All is well.")
    }

    // MARK: The log

    private static let push = PushDescription(
        app: "com.example.Home", environment: .production, tokenClass: .control, type: .controls,
        token: [1, 2, 3], apnsID: APNSID(high: 0x0123_4567_89AB_8DEF, low: 1 << 63),
        collapseID: [], subject: Array("door \"7\"".utf8), eventID: "e-1",
        event: .init(topic: "events", partition: 3, offset: 17))

    @Test func `a shadow's log has a line for each push, and no token`() throws {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "shadow-\(UUID().uuidString).ndjson")
        defer { try? FileManager.default.removeItem(at: file) }
        let log = try ShadowLog(
            path: file.path, bytesMax: 1 << 20,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var bare = Self.push
        (bare.subject, bare.eventID, bare.event) = ([], nil, nil)
        bare.collapseID = Array("c".utf8)
        for push in [Self.push, bare] {
            log.append(push, at: WallTime(rfc3339: "2026-11-21T06:12:00Z")!)
        }
        log.close(within: .seconds(30))
        #expect(log.counts.written == 2 && log.counts.lost == 0)
        let text = try String(contentsOf: file, encoding: .utf8)
        let begin =
            #"{"at":"2026-11-21T06:12:00.000Z","tokenID":"039058c6f2c0cb49","#
            + #""app":"com.example.Home","environment":"production","class":"control","#
            + #""type":"controls","apnsID":"01234567-89ab-8def-8000-000000000000","#
        let ofEvent = #""subject":"door \"7\"","event":"e-1","source":"events/3/17"}"#
        let ofOperator = #""collapseID":"c"}"#
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines == [begin + ofEvent, begin + ofOperator])
        #expect(!text.contains("010203"))
    }
}
