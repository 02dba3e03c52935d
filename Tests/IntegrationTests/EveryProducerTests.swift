// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

extension `One worker` {
    /// What producers may do to records, whatever these say.
    @Suite(.serialized) struct `reads the records of every producer` {
        @Test(arguments: ["gzip", "snappy", "lz4", "zstd"])
        func `a worker reads batches of every compression, with headers`(
            codec: String
        ) async throws {
            let fleet = try #require(Fleet.current)
            let tokens = (0..<50).map { _ in TestToken() }
            let subjects = tokens.map { "door-\($0.hex.prefix(12))" }
            for (token, subject) in zip(tokens, subjects) {
                try fleet.register(.controls([token], show: [subject]))
            }
            try await fleet.registrationsApplied()
            // One batch of one partition.
            try await fleet.kcat(
                .cloudEvents, lines: subjects.map { "\($0)\t{\"open\":true}" },
                [
                    "-p", "1", "-z", codec, "-X", "linger.ms=200", "-H", "ce_specversion=1.0",
                    "-H", "ce_id=1", "-H", "ce_source=/doors", "-H", "ce_type=opened",
                ])
            try await fleet.eventually("the pushes of all events") {
                tokens.allSatisfy { fleet.accepted($0) >= 1 }
            }
        }

        @Test func `a record of a megabyte is an event, and a larger one is a dead letter`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let token = TestToken()
            let subject = "door-\(token.hex.prefix(12))"
            try fleet.register(.controls([token], show: [subject]))
            try await fleet.registrationsApplied()
            let letters = try fleet.deadLetterLog
            func write(bytes: Int) async throws {
                let start = #"{"subject":"\#(subject)","more":""#
                let value =
                    start + String(repeating: "x", count: bytes - start.utf8.count - 2) + "\"}"
                // Compressed, so that the broker's own limit is not in the way.
                try await fleet.kcat(
                    .events, lines: ["large-\(token.hex)\t\(value)"],
                    ["-p", "1", "-z", "zstd", "-X", "message.max.bytes=4000000"])
            }
            try await write(bytes: 1 << 20)
            try await fleet.eventually("the push") { fleet.accepted(token) == 1 }
            try await write(bytes: 1 << 20 + 1)
            try await fleet.eventually("a dead letter") {
                letters.records.contains { $0.key == "large-\(token.hex)" }
            }
            let letter = try #require(
                letters.records.last { $0.key == "large-\(token.hex)" }
            ).decoded(as: DeadLetterValue.self)
            #expect(letter.reason == "recordTooLarge")
            try fleet.emit(subject)
            try await fleet.eventually("the push of the next event") {
                fleet.accepted(token) == 2
            }
        }

        @Test func `a committed transaction is read`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let token = TestToken()
            let subject = "door-\(token.hex.prefix(12))"
            try fleet.register(.controls([token], show: [subject]))
            try await fleet.registrationsApplied()
            try await fleet.kcat(
                .events, lines: ["\(subject)\t{}"],
                ["-p", "3", "-X", "transactional.id=\(token.hex)"])
            try await fleet.eventually("the push") { fleet.accepted(token) == 1 }
        }

        /// The embedded Kafka would show the aborted records.
        @Test(.enabled(if: Fleet.testBootstrap != nil))
        func `an aborted transaction is never pushed`() async throws {
            let fleet = try #require(Fleet.current)
            let token = TestToken()
            let subject = "door-\(token.hex.prefix(12))"
            try fleet.register(.controls([token], show: [subject]))
            try await fleet.registrationsApplied()
            let log = fleet.directory.appending(path: "aborted-\(token.hex).log").path
            let producer = try FleetProcess(
                "kcat", program: "/usr/bin/kcat",
                arguments: [
                    "-P", "-b", fleet.bootstrap, "-t", fleet.topics[.events], "-p", "3", "-K",
                    "\t", "-X", "transactional.id=\(token.hex)", "-X",
                    "transaction.timeout.ms=5000",
                ], log: log)
            let end = try await fleet.endOffset(of: .events, partition: 3)
            // It reads a KiB at a time.
            for _ in 0..<200 { producer.say("\(subject)\t{}") }
            while try await fleet.endOffset(of: .events, partition: 3) < end + 10 {
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(fleet.accepted(token) == 0)
            // Asked to end, it would wait for the end of its input first, and then not abort. The
            // broker aborts the transaction of a producer that is gone, at its timeout.
            producer.signal(SIGKILL)
            _ = try await producer.finish()
            // The next record of the partition is read, so that those before it have been passed.
            let other = TestToken()
            try fleet.register(.controls([other], show: ["next-\(token.hex)"]))
            try await fleet.registrationsApplied()
            try fleet.write(to: .events, key: "next-\(token.hex)", value: nil, partition: 3)
            try await fleet.eventually("the push of the next record") { fleet.accepted(other) == 1 }
            #expect(fleet.accepted(token) == 0, "\(producer.output)")
        }
    }
}

extension Fleet {
    /// Writes lines of key, tab and value with kcat.
    fileprivate func kcat(
        _ topic: FleetTopics.Written, lines: [String], _ options: [String]
    ) async throws {
        let result = try await run(
            ["-P", "-b", bootstrap, "-t", topics[topic], "-K", "\t"] + options,
            program: "/usr/bin/kcat", input: lines.map { $0 + "\n" }.joined())
        guard result.status == 0 else { throw Timeout(description: "kcat: \(result.output)") }
    }

    /// The offset of the next record of a partition, by kcat.
    fileprivate func endOffset(
        of topic: FleetTopics.Written, partition: Int
    ) async throws -> Int {
        let place = "\(topics[topic]):\(partition):-1"
        let result = try await run(
            ["-Q", "-b", bootstrap, "-t", place], program: "/usr/bin/kcat")
        let offset = result.output.split(separator: " ").last.flatMap {
            Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        return try #require(offset, "kcat: \(result.output)")
    }
}
