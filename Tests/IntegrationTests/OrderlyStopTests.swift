// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Checker
import FleetKit
import Foundation
import Glibc
import Testing

@Suite(.serialized, .fleet(.underTraffic(workers: 1)))
struct `An orderly stop` {
    @Test func `an orderly stop exits 0 and leaves nothing to send again`() async throws {
        let fleet = try #require(Fleet.current)
        let traffic = try Traffic(fleet, subjects: 100, tokensEach: 3)
        try await traffic.begin()
        let emission = Task { try await traffic.emit(3000) }
        try await traffic.accepted(1500)
        try await stop(fleet.workers[0])
        try await emission.value
        // Otherwise it came too late to stop anything.
        #expect(try !traffic.suppression().isProven)
        // What it had read was sent, and what it had sent was committed.
        try fleet.startWorker()
        let suppression = try await traffic.delivered()
        #expect(suppression.duplicates == 0)
        try await stop(fleet.workers[1])

        // All is committed: a third one sends what is new, and only that.
        let sent = fleet.simulator.counts.accepted
        let marked = traffic.subjects.prefix(4).flatMap { traffic.tokens[$0]! }
        try fleet.startWorker()
        try await traffic.emit(4)
        _ = try await traffic.delivered()
        try await stop(fleet.workers[2])
        #expect(fleet.simulator.counts.accepted == sent + marked.count)
    }

    /// Whoever sends one signal to a process and another to its group sends two.
    @Test func `further signals to stop change nothing, to the very end of the process`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        for _ in 0..<3 {
            try fleet.startWorker()
            let worker = try #require(fleet.workers.last)
            try await fleet.eventually("the worker") { worker.output.contains("index is complete") }
            while worker.isRunning {
                worker.signal(SIGTERM)
                usleep(50)
            }
            #expect(try await worker.finish() == 0)
        }
    }

    /// `delivery.shutdownTimeout` is 25 s by default; the machine may be slow.
    private func stop(_ worker: FleetProcess) async throws {
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 0)
        #expect(worker.output.contains("stopped"))
    }
}

@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `A stop in which something hangs` {
    private let fleet: Fleet
    private static let unknownTopic = 3

    init() throws { fleet = try #require(Fleet.current) }

    /// librdkafka 2.0.2 never destroys a consumer that has lost a topic. The embedded Kafka cannot
    /// delete one. It can say that there is none of the name.
    @Test(.enabled(if: Fleet.testBootstrap == nil))
    func `a worker whose events topic was deleted stops in order`() async throws {
        let variables = [
            "LAMPLIGHTER_KAFKA_PROPERTIES_TOPIC_METADATA_REFRESH_INTERVAL_MS": "1000"
        ]
        let worker = try start(variables)
        let topic = fleet.topics[.orders]
        try await fleet.eventually("partitions") { worker.output.contains("assigned") }
        try await fleet.tellKafka("topicerr \(topic) \(Self.unknownTopic)")
        // The text is another with a newer librdkafka, which says it when the group is told.
        try await fleet.eventually("the topic's end") {
            worker.output.contains("code=UNKNOWN_TOPIC_OR_PART")
        }
        try await fleet.eventually("the revocation") { worker.output.contains("unassigned") }
        worker.signal(SIGTERM)
        let status = try await worker.finish()
        #expect(status == 0, "\(worker.excerpt)")
        try await fleet.tellKafka("topicerr \(topic) 0")
    }

    /// Nobody reads the worker's log any more, so that its threads hang as soon as they write to it.
    @Test func `a worker that hangs while it stops ends itself with 79`() async throws {
        let path = fleet.directory.appending(path: "log.fifo").path
        try #require(mkfifo(path, 0o600) == 0)
        let log = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        try #require(log >= 0)
        defer { close(log) }
        let worker = try start(["LAMPLIGHTER_DELIVERY_SHUTDOWNTIMEOUT": "2s"], errors: path)
        var said = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        try await waitUntil("the index") {
            let count = read(log, &buffer, buffer.count)
            if count > 0 { said += String(decoding: buffer.prefix(count), as: UTF8.self) }
            return said.contains("the index is complete")
        }
        while write(log, buffer, buffer.count) > 0 {}
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 79)
    }

    private func start(
        _ variables: [String: String], errors: String? = nil
    ) throws -> FleetProcess {
        try FleetProcess(
            "worker", program: Fleet.program,
            arguments: ["run", "--config", fleet.configurationFile.path], variables: variables,
            log: fleet.directory.appending(path: "\(UUID().uuidString).log").path, errors: errors)
    }
}

@Suite(
    .serialized,
    .fleet(TestPlan(recordRequests: 10, answerDelay: .milliseconds(2), holdMax: .seconds(60))))
struct `A stop while APNs refuses one team's key` {
    @Test func `a stop while a team's key is refused ends soon and repeats no other's pushes`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let healthy = (0..<40).map { _ in TestToken("aa" + TestToken().hex.dropFirst(2)) }
        let ill = (0..<40).map { _ in TestToken("ee" + TestToken().hex.dropFirst(2)) }
        try fleet.register(
            (healthy + ill).enumerated().map { number, token in
                .controls(
                    [token], show: ["subject-\(number)"],
                    app: number < healthy.count ? TestApp.home : TestApp.other)
            })
        try await fleet.registrationsApplied()
        fleet.simulator.perform(
            .rules([
                ScriptedRule(tokenPrefix: "ee", answer: .reason(403, "InvalidProviderToken"))
            ]))
        // In each partition the refused team's event is the first.
        try fleet.write(records(healthy.count..<healthy.count + ill.count, app: TestApp.other))
        try await fleet.eventually("the refusal") {
            try answers(fleet).contains { $0.status == 403 }
        }
        try fleet.write(records(0..<healthy.count, app: TestApp.home))
        try await fleet.eventually("the healthy team's pushes") {
            try accepted(fleet, healthy).count == healthy.count
        }
        let stopwatch = Stopwatch()
        fleet.workers[0].signal(SIGTERM)
        #expect(try await fleet.workers[0].finish() == 0)
        // The grace period of every event is over in 2 s; a stop that used up its patience
        // would take 20.
        #expect(stopwatch.time < .seconds(12))

        fleet.simulator.perform(.rules([]))
        try fleet.startWorker()
        try await fleet.eventually("the refused team's pushes") {
            try Set(accepted(fleet, ill)).count == ill.count
        }
        #expect(try accepted(fleet, healthy).count == healthy.count, "none is sent again")
    }

    private func answers(_ fleet: Fleet) throws -> [LoggedOutcome] {
        try fleet.answers()
    }

    private func accepted(_ fleet: Fleet, _ tokens: [TestToken]) throws -> [String] {
        let tokens = Set(tokens.map(\.hex))
        return try answers(fleet).filter { $0.status == 200 && tokens.contains($0.token) }
            .map(\.token)
    }

    private func records(_ subjects: Range<Int>, app: String) -> [WrittenRecord] {
        subjects.map { number in
            WrittenRecord(
                topic: .events, key: "subject-\(number)",
                value: #"{"v":1,"subject":"subject-\#(number)","app":"\#(app)"}"#,
                partition: Int32(number) % FleetTopics.partitionsEach)
        }
    }
}
