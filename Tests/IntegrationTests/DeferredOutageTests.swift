// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import Rdkafka
import RecordFormats
import Testing

/// Nobody leads a partition of the deferred topic, through which pushes go that keep a long gap.
///
/// The embedded Kafka of librdkafka 2.8 (Debian 13) ends with SIGSEGV when somebody writes to such a
/// partition.
@Suite(
    .enabled(if: RdkafkaVersion.number < 0x0208_0000, "2.8's mock cluster crashes"),
    .serialized,
    .fleet(TestPlan(registrationGrace: .milliseconds(200), controlGap: .seconds(600))))
struct `An outage of the deferred topic` {
    private let fleet: Fleet
    private static let partitions = Int(FleetTopics.partitionsEach)

    init() throws { fleet = try #require(Fleet.current) }

    private func setLeader(_ broker: Int, of partitions: [Int], by kafka: FleetProcess) {
        for partition in partitions {
            kafka.say("leader \(fleet.topics.deferred) \(partition) \(broker)")
        }
    }

    private static func partition(of token: TestToken) -> Int {
        let key = "production/\(TestApp.home).push-type.controls/\(token.hex)"
        return KeyPartition.of(Array(key.utf8), partitions: partitions)
    }

    @Test
    func `a partition of deferred without a leader keeps no push, and the others keep their gaps`()
        async throws
    {
        // Only of the embedded one can the leaders be taken away.
        guard let kafka = fleet.broker, let worker = fleet.workers.first else { return }
        let tokens = (0..<40).map { _ in TestToken() }
        for (number, token) in tokens.enumerated() {
            try fleet.register(.controls([token], show: ["door-\(number)"]))
        }
        try await fleet.registrationsApplied()
        func emit() throws { for number in tokens.indices { try fleet.emit("door-\(number)") } }
        try emit()
        try await fleet.eventually("the first push to each") {
            tokens.allSatisfy { fleet.accepted($0) == 1 }
        }
        setLeader(-1, of: [0], by: kafka)
        let (absent, present) = (
            tokens.filter { Self.partition(of: $0) == 0 },
            tokens.filter { Self.partition(of: $0) > 0 }
        )
        try #require(!absent.isEmpty && !present.isEmpty)
        try await fleet.eventually("a push to each of the absent partition", within: .seconds(60)) {
            try emit()
            return absent.allSatisfy { fleet.accepted($0) > 1 }
        }
        #expect(present.allSatisfy { fleet.accepted($0) == 1 })

        // None has a leader: nobody's push waits.
        setLeader(-1, of: Array(0..<Self.partitions), by: kafka)
        let before = tokens.map { fleet.accepted($0) }
        try await fleet.eventually("a push to each", within: .seconds(60)) {
            try emit()
            return zip(tokens, before).allSatisfy { fleet.accepted($0) > $1 }
        }
        setLeader(1, of: Array(0..<Self.partitions), by: kafka)
        let port = try #require(fleet.workers[0].healthPort)
        let text = try await fleet.request("/metrics", port: port).body
        let withoutGap = text.split(separator: "\n").first {
            $0.hasPrefix("lamplighter_pushes_without_gap_total")
        }
        #expect(withoutGap?.hasSuffix(" 0") == false, "\(withoutGap ?? "no metric")")
        #expect(!worker.output.contains("Fatal"))
    }
}
