// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Logging
import PushModel
import Testing
import Worker

@testable import FleetKit

@Suite struct `A worker's log` {
    @Test func `a worker's log says how many partitions the worker has given up`() {
        // By the worker's own type, so that a change of its format is noticed here.
        let lines = [("assigned", 12), ("unassigned", 8), ("unassigned", 4)].map { message, count in
            LogLine(
                time: WallTime(milliseconds: 0), level: .info, message: message,
                metadata: ["partitions": .stringConvertible(count)]
            ).text
        }
        #expect(WorkerLog.partitionsGivenUp(in: lines.joined(separator: "\n")) == 12)
        #expect(WorkerLog.partitionsGivenUp(in: "") == 0)
    }
}
