// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Rdkafka
import Testing

/// Nobody leads the partitions of the dead-letters topic: nothing can be written to it.
///
/// The embedded Kafka of librdkafka 2.8 (Debian 13) ends with SIGSEGV when somebody writes to such a
/// partition; that of 2.0 (Debian 12) refuses the write, as a broker does.
@Suite(
    .enabled(if: RdkafkaVersion.number < 0x0208_0000, "2.8's mock cluster crashes"),
    .serialized, .fleet(TestPlan(registrationGrace: .milliseconds(200))))
struct `An outage of the dead-letters topic` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private func setLeader(_ broker: Int, by kafka: FleetProcess) {
        for partition in 0..<FleetTopics.partitionsEach {
            kafka.say("leader \(fleet.topics.deadLetters) \(partition) \(broker)")
        }
    }

    @Test func `good events are pushed while dead letters wait, and then all of it is written`()
        async throws
    {
        // Only of the embedded one can the leaders be taken away.
        guard let kafka = fleet.broker, let worker = fleet.workers.first else { return }
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        setLeader(-1, by: kafka)
        let bad = "{" + String(repeating: "x", count: 60_000)
        for _ in 0..<10 {
            try fleet.write(
                (0..<30).map { WrittenRecord(topic: .events, key: "bad-\($0)", value: bad) })
            try await fleet.change("door", heardBy: token)
        }
        try await fleet.eventually("a line") {
            worker.output.contains("Kafka accepts no records of a topic")
                && worker.output.contains("records=\"dead letters\"")
        }
        // Registrations are applied as well.
        let other = TestToken()
        try fleet.register(.controls([other], show: ["lamp"]))
        try await fleet.registrationsApplied()
        try await fleet.change("lamp", heardBy: other)

        setLeader(1, by: kafka)
        let log = try fleet.deadLetterLog
        try await fleet.eventually("the letters") { log.records.count == 300 }
        let letters = try log.records.map { try $0.decoded(as: DeadLetterValue.self) }
        #expect(letters.allSatisfy { $0.reason == "invalidJSON" && $0.tokens.isEmpty })
        #expect(Set(letters.map(\.source)).count == 300)
        try await fleet.eventually("another line") {
            worker.output.contains("Kafka accepts the records of a topic again")
        }
    }
}
