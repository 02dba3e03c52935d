// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import LinuxIO
import Testing

/// A record that ends the worker that reads it must be named, or nobody can pass over it.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `A record that crashes a worker` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    /// What a worker leaves that ended while it read this record of its second topic.
    private func leave(_ file: URL, partition: UInt64, offset: UInt64) throws {
        let words = try SharedWords(path: file.path)
        words.rewrite(text: ["another", fleet.topics[.orders]].joined(separator: "\n"))
        words[1] = partition
        words[2] = offset
        words[0] = 2
    }

    private func configuration(_ file: URL, skipping record: String? = nil) throws -> URL {
        var text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        text += "intake: {lastRecordFile: \(file.path)}\n"
        if let record {
            text = text.replacing("startFrom:", with: "skip: [\"\(record)\"]\n  startFrom:")
        }
        let configuration = fleet.directory.appending(path: "\(UUID().uuidString).yaml")
        try text.write(to: configuration, atomically: true, encoding: .utf8)
        return configuration
    }

    /// Runs a worker until it has its index, then stops it.
    private func output(_ configuration: URL) async throws -> String {
        let worker = try FleetProcess(
            "worker", program: Fleet.program,
            arguments: ["run", "--config", configuration.path],
            log: configuration.appendingPathExtension("log").path)
        try await waitUntil("the index") {
            guard worker.isRunning else { throw Timeout(description: worker.excerpt) }
            return worker.output.contains("the index is complete")
        }
        worker.signal(SIGTERM)
        let status = try await worker.finish()
        #expect(status == 0, "\(worker.excerpt)")
        return worker.output
    }

    @Test func `after a crash in a record the next worker names it, and the one after does not`()
        async throws
    {
        let file = fleet.directory.appending(path: "record")
        try leave(file, partition: 3, offset: 1 << 33)
        let record = "\(fleet.topics[.orders])/3/\(1 << 33)"
        let first = try await output(try configuration(file))
        #expect(first.contains("while it was reading an event record"))
        #expect(first.contains("kafka.skip") && first.contains("record=\(record)"))
        // The remedy is one that the configuration takes.
        let second = try await output(try configuration(file, skipping: record))
        #expect(!second.contains("while it was reading"))
    }

    @Test func `a file for the record in hand that cannot be had is said and stops nobody`()
        async throws
    {
        let file = fleet.directory.appending(path: "no-such-folder/record")
        let said = try await output(try configuration(file))
        #expect(said.contains("intake.lastRecordFile cannot be used"))
    }
}
