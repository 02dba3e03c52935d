// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import LinuxIO
import PushModel
import Testing

/// APNs answers nothing while many events come for each of many subjects; then it answers again.
@Suite(
    .serialized,
    .fleet(TestPlan(recordRequests: 10, registrationGrace: .milliseconds(200))))
struct `A backlog of APNs` {
    private static let subjects = 1000
    /// `BACKLOG_EVENTS=1000` for more.
    private static let eventsEach =
        ProcessInfo.processInfo.environment["BACKLOG_EVENTS"].flatMap(Int.init) ?? 100

    @Test func `a backlog of many events is two pushes to each token at most, and none is lost`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let tokens = (0..<Self.subjects).map { _ in TestToken() }
        try fleet.register(
            tokens.enumerated().map { number, token in
                .controls([token], show: ["subject-\(number)"])
            })
        try await fleet.registrationsApplied()
        let positions = try fleet.positions()
        fleet.simulator.perform(.stall(true))
        for _ in 0..<Self.eventsEach {
            try fleet.write(
                (0..<Self.subjects).map {
                    WrittenRecord(topic: .events, key: "subject-\($0)", value: nil)
                })
        }
        let writtenAt = SystemClock.wallNanoseconds()
        // The embedded Kafka keeps 5 MiB of a partition: all of it is to be read.
        try await fleet.eventually("every event to be read and kept", within: .seconds(120)) {
            try fleet.lags(positions).allSatisfy { $0 == 0 }
        }
        fleet.simulator.perform(.stall(false))

        let expected = Set(tokens.map(\.hex))
        let deferred = try TopicLog(topic: fleet.topics.deferred, bootstrap: fleet.bootstrap)
        try await fleet.eventually("every push to end", within: .seconds(120)) {
            let last = Dictionary(
                deferred.records.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
            return try last.values.allSatisfy { $0 == nil }
                && expected.isSubset(of: fleet.answers().map(\.token))
        }
        let accepted = Dictionary(
            grouping: try fleet.answers().filter { $0.status == 200 }, by: \.token)
        #expect(expected.allSatisfy { 1...2 ~= accepted[$0]?.count ?? 0 })
        #expect(expected.allSatisfy { accepted[$0]?.contains { $0.t > writtenAt } == true })
    }
}
