// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import FleetKit
import Foundation
import Glibc
import Testing

@Suite(.serialized)
enum `A crash of a worker` {
    @Suite(.serialized, .fleet(.underTraffic(workers: 1)))
    struct `with one worker` {
        @Test func `nothing is lost when a worker is killed in mid-traffic and started again`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let traffic = try Traffic(fleet, subjects: 200, tokensEach: 3)
            let worker = try #require(fleet.workers.first)
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            worker.signal(SIGKILL)
            #expect(try await worker.finish() == -SIGKILL)
            try await emission.value
            // Otherwise the crash came too late to show anything.
            #expect(try !traffic.suppression().isProven)
            try fleet.startWorker()
            let suppression = try await traffic.delivered()
            print(
                "after kill -9: \(suppression.acceptedPushes) accepted, \(suppression.duplicates) duplicates"
            )
            #expect(suppression.obligations == 4004 * 3)
        }
    }

    @Suite(.serialized, .fleet(.underTraffic(workers: 2)))
    struct `with two workers` {
        @Test
        func `nothing is lost when one worker is killed and its partitions pass to the other`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let traffic = try Traffic(fleet, subjects: 200, tokensEach: 3)
            try await fleet.eventually("both workers to have partitions") {
                fleet.workers.allSatisfy { $0.output.contains("partitions=") }
            }
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            fleet.workers[0].signal(SIGKILL)
            #expect(try await fleet.workers[0].finish() == -SIGKILL)
            try await emission.value
            let suppression = try await traffic.delivered()
            print(
                "after a takeover: \(suppression.acceptedPushes) accepted, \(suppression.duplicates) duplicates"
            )
            #expect(suppression.obligations == 4004 * 3)
        }
    }
}
