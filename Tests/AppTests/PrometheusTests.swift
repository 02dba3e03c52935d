// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import KafkaLog
internal import PushModel
internal import SchemaRegistry
internal import Telemetry
internal import Testing

@testable internal import Configuration
@testable internal import Pipeline
@testable internal import Worker

/// What Prometheus's own tool says of the pages.
@Suite struct `Prometheus` {
    /// A status from which every metric has a series, with names that need escaping.
    private static var status: WorkerStatus {
        var status = WorkerStatus(
            phase: .replaying, at: WallTime(milliseconds: 1_700_000_000_000),
            index: WorkerStatus.Index(), hasJoinedGroup: true, counters: Counters(),
            load: PipelineLoad(
                queued: 1, inFlight: 2, resting: 3, fanOuts: 4, claims: 5, deferred: 6,
                unacknowledged: 7, refused: 0, payloadBytes: 8))
        status.index.tables = [
            WorkerStatus.Table(
                topic: "lamplighter.registrations", partitions: 1, unread: 3, age: .seconds(2))
        ]
        (status.index.recordsRead, status.index.elapsed) = (1, .seconds(4))
        status.index.snapshotAge = .seconds(60)
        status.index.tokensOf = [
            .init(
                app: "com.example.Home", environment: "production", class: "control", tokens: 8)
        ]
        status.restrictions[.rollout(app: "com.example.Home")] = Restriction(
            .rollout(
                Rollout([Rollout.Step(percent: 10, from: status.at)], of: TokenClassSet(.device))),
            by: "anna", at: status.at)
        status.outcomes = .init(topic: "outcomes", written: 9, noRoom: 1, refused: 2)
        status.shadow = .init(pushes: 9, deadLetters: 0, lines: 9, linesLost: 1)
        status.partitions = [
            WorkerStatus.Partition(topic: "lamplighter.events", partition: 0, lag: 5)
        ]
        status.consumedTopics = ["lamplighter.events", "lamplighter.deferred"]
        status.producedTopics = ["lamplighter.suppressions"]
        status.transports = [TransportCounts(), TransportCounts()]
        status.export = WorkerStatus.Export()
        status.pools = [
            WorkerStatus.Pool(
                credential: "home", environment: "production",
                endpoint: "api.push.apple.com:443", connections: 2, streams: 3,
                streamsMax: 2000, providerTokenAge: .seconds(90), refusals: 1)
        ]
        status.pools[0].connected.goAways = 3
        status.breakerPhases = [
            WorkerStatus.BreakerPhase(
                credential: "team \"home\"\\", environment: .production, phase: .halfOpen),
            WorkerStatus.BreakerPhase(
                credential: "home", environment: .development, app: "com.example.Home",
                apnsTopic: "com.example.Home.push-type.controls", phase: .open),
        ]
        status.events = [
            WorkerStatus.EventCount(topic: "lamplighter.events", outcome: "matched", count: 2)
        ]
        status.pushes = [
            PushTally.Count(
                app: "com.example.Home", type: "controls", outcome: "accepted", reason: "", count: 3
            )
        ]
        status.eventToAccepted = [(.controls, LatencyHistogram())]
        status.recordNoteTotals = [
            .init(topic: "lamplighter.events", kind: "conditionType", count: 4)
        ]
        status.unread = [("lamplighter.events", 4)]
        status.topicTurns = [
            WorkerStatus.TopicTurn(topic: "lamplighter.events", waits: 2, isWaiting: true)
        ]
        status.setAside = ["records", "rows"].map { unit in
            WorkerStatus.SetAsideCount(
                topic: "lamplighter.registrations", unit: unit, reason: "unknownApp",
                count: 5)
        }
        status.misplaced = [.sample(of: "lamplighter.registrations", 6)]
        status.schemas = WorkerStatus.Schemas(known: 1, awaited: 1, counts: SchemaSource.Counts())
        status.deadLetters = [LetterKind(reason: "BadDeviceToken", topic: "orders"): 6]
        status.budgets = [BudgetUse(type: "widgets", perDay: 60, tokensOver: 8, pushesOver: 9)]
        status.memory = [("index", 7)]
        status.canary = .sample(
            at: status.at, silence: .seconds(4),
            proof: .cameThrough(status: 200, after: .milliseconds(84)))
        (status.process.version, status.process.commit) = ("0.1.0", "0123456789ab")
        status.process.cpuTime = .milliseconds(1250)
        (status.process.fileDescriptors, status.process.fileDescriptorsMax) = (70, 1024)
        return status
    }

    @Test func `promtool finds nothing to complain about in the metrics`() throws {
        let text = MetricsText.text(WorkerMetrics.families(of: Self.status), as: .prometheus)
        let (status, output) = try Self.run("/usr/bin/promtool", ["check", "metrics"], text)
        #expect(status == 0 && output.isEmpty, "\(output)")
    }

    @Test func `every metric in the reference has a series`() {
        let families = WorkerMetrics.families(of: Self.status)
        #expect(families.map(\.definition) == WorkerMetrics.definitions)
        for family in families { #expect(!family.series.isEmpty, "\(family.definition.name)") }
    }

    @Test func `a breaker is told by labels that other metrics have, and so are connections`() {
        let text = MetricsText.text(WorkerMetrics.families(of: Self.status), as: .prometheus)
        let lines = text.split(separator: "\n")
        for line in [
            #"lamplighter_breaker_state{of="credential",credential="team \"home\"\\","#
                + #"environment="production",app="",apns_topic=""} 1"#,
            #"lamplighter_breaker_state{of="topic",credential="home",environment="development","#
                + #"app="com.example.Home",apns_topic="com.example.Home.push-type.controls"} 2"#,
            #"lamplighter_apns_goaways_total{credential="home",environment="production",service=""} 3"#,
        ] {
            #expect(lines.contains { $0 == line }, "\(line)")
        }
    }

    @Test func `a worker tells how long an offset is held, and how long it may be`() {
        var status = Self.status
        status.load.oldestUncommitted = .milliseconds(2500)
        status.holdMax = .seconds(600)
        let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        for line in [
            "lamplighter_oldest_uncommitted_seconds 2.5",
            "lamplighter_offset_hold_allowed_seconds 600.0",
        ] {
            #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)")
        }
    }

    @Test func `a worker tells how much of the deferred topic it has left in Kafka`() {
        var status = Self.status
        status.load.forgotten = 7
        let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        #expect(text.split(separator: "\n").contains { $0 == "lamplighter_deferred_left 7" })
    }

    @Test func `a replay tells how far it is, and nothing once it is over`() {
        var status = Self.status
        let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        for line in [
            "lamplighter_replay_records{state=\"read\"} 1",
            "lamplighter_replay_records{state=\"left\"} 3", "lamplighter_replay_left_seconds 12.0",
        ] {
            #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)")
        }
        status.phase = .running
        let later = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        #expect(!later.contains("\nlamplighter_replay_"))
    }

    @Test func `a process has the metrics that dashboards of Prometheus's clients ask for`() {
        let text = MetricsText.text(WorkerMetrics.families(of: Self.status), as: .prometheus)
        let lines = text.split(separator: "\n")
        for line in [
            "process_cpu_seconds_total 1.25", "process_open_fds 70", "process_max_fds 1024",
        ] {
            #expect(lines.contains { $0 == line }, "\(line)")
        }
    }

    private static func run(
        _ program: String, _ arguments: [String], _ input: String
    ) throws -> (Int32, String) {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let (standardInput, output) = (Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }
}
