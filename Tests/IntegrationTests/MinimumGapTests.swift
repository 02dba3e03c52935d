// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// `planning.minimumGap`: real workers, Kafka and requests.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            workers: 2, registrationGrace: .milliseconds(200), holdMax: .seconds(2),
            controlGap: .seconds(5))))
struct `The minimum gap in a fleet` {
    private let fleet: Fleet
    private static let gap = Duration.seconds(5)

    init() throws { fleet = try #require(Fleet.current) }

    /// When APNs accepted the pushes to this token, in nanoseconds.
    private func acceptances(_ token: TestToken) throws -> [Int64] {
        try fleet.answers().filter { $0.token == token.hex && $0.status == 200 }.map(\.t)
    }

    @Test
    func `no two pushes are closer than the gap through restarts, a crash and a rebalance`()
        async throws
    {
        let tokens = (0..<20).map { _ in TestToken() }
        for (number, token) in tokens.enumerated() {
            try fleet.register(.controls([token], show: ["door-\(number)"]))
        }
        try await fleet.registrationsApplied()
        try await fleet.isDividedAmongWorkers()
        let fleet = fleet
        let emission = Task {
            for _ in 0..<60 {
                for number in tokens.indices { try fleet.emit("door-\(number)") }
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        for _ in 0..<2 {
            try await Task.sleep(for: .seconds(3))
            try await fleet.replaceWorker()
        }
        try await Task.sleep(for: .seconds(3))
        fleet.workers.last!.signal(SIGKILL)
        _ = try await fleet.workers.last!.finish()
        try fleet.startWorker()
        try await emission.value
        let last = Int64(Date.now.timeIntervalSince1970 * 1e9)
        for number in tokens.indices { try fleet.emit("door-\(number)") }
        // A push that was under way at the crash may have been accepted up to 60 s after it was
        // announced, so says its record; the next one keeps the distance to that.
        try await fleet.eventually("the last event to be told", within: .seconds(120)) {
            try tokens.allSatisfy { try acceptances($0).last ?? 0 > last }
        }
        for token in tokens {
            let times = try acceptances(token)
            let least = zip(times, times.dropFirst()).map { $1 - $0 }.min() ?? .max
            #expect(least >= Self.gap.components.seconds * 1_000_000_000, "\(token.hex): \(times)")
            #expect(times.count >= 3, "\(token.hex): \(times)")
        }
    }
}
