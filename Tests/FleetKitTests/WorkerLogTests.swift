// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Logging
import PushModel
import Testing
import Worker

@testable import FleetKit
@testable import lamplighter

@Suite struct `A worker's log` {
    /// By the worker's own type, so that a change of its format is noticed here.
    private static func line(_ message: String, _ metadata: Logger.Metadata) -> LogLine {
        LogLine(
            time: WallTime(milliseconds: 0), level: .info, message: message, metadata: metadata)
    }

    private static func log(_ lines: [LogLine], isJSON: Bool) -> String {
        let source = LogSource(worker: "partitions=7", version: "1.0.0", group: "port=7")
        return lines.map { isJSON ? $0.json(source: source) : $0.text }.joined(separator: "\n")
    }

    @Test(arguments: [false, true])
    func `a worker's log says how many partitions the worker has given up`(isJSON: Bool) {
        let lines = [("assigned", 12), ("unassigned", 8), ("unassigned", 4)].map { message, count in
            Self.line(message, ["partitions": .stringConvertible(count)])
        }
        #expect(WorkerLog.partitionsGivenUp(in: Self.log(lines, isJSON: isJSON)) == 12)
        #expect(WorkerLog.partitionsGivenUp(in: "") == 0)
    }

    @Test(arguments: [false, true])
    func `a worker's log says where the last of several workers listens`(isJSON: Bool) {
        let lines = [1, 2].flatMap { run in
            [
                ("listening for probes and for requests of metrics", 100),
                ("listening for requests of operators", 200), ("stopped", 300),
            ].map { message, port in
                Self.line(
                    message, ["host": "127.0.0.1", "port": .stringConvertible(port + run)])
            }
        }
        let log = Self.log(lines, isJSON: isJSON)
        #expect(WorkerLog.healthPort(in: log) == 102)
        #expect(WorkerLog.adminPort(in: log) == 202)
        #expect(WorkerLog.adminPort(in: "") == nil)
    }
}
