// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import FleetKit

@Suite struct `Thread status` {
    private func stat(_ name: String, nice: Int, policy: Int) -> String {
        let fields = (3...52).map { [19: "\(nice)", 41: "\(policy)"][$0] ?? "7" }
        return "4711 (\(name)) \(fields.joined(separator: " "))\n"
    }

    @Test func `a thread has its name, and its nice value where that has a say`() throws {
        let low = try #require(ThreadStatus(stat: stat("NIO-ELT-0-#1", nice: 19, policy: 0)))
        #expect(low.name == "NIO-ELT-0-#1" && low.scheduling == "nice 19")
        let idle = try #require(ThreadStatus(stat: stat("a) b (c", nice: 19, policy: 5)))
        #expect(idle.name == "a) b (c" && idle.scheduling == "idle")
        let batch = try #require(ThreadStatus(stat: stat("worker", nice: 10, policy: 3)))
        #expect(batch.scheduling == "batch, nice 10")
        #expect(ThreadStatus(stat: "4711 (cut off) S 1 2") == nil)
        #expect(ThreadStatus(stat: ") (") == nil)
    }
}
