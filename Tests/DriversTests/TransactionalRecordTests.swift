// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Logging
import PushModel
import Testing

@testable import KafkaLog

/// The clients for tables and for events have the same settings of fetching
/// (`The settings of Kafka clients`); a table needs no group, which the stand-in has not.
@Suite struct `Transactional records` {
    private typealias Batch = KafkaLogStandIn.Batch

    private struct Seen: Equatable {
        var offset: Int64
        var value: String
        var time: Int64 = 1_700_000_000_000
        var header: String?
    }

    /// All records up to the end of the log, as the worker gets them.
    private func read(_ batches: [Batch], _ properties: [String: String] = [:]) async throws
        -> [Seen]
    {
        let kafka = try KafkaLogStandIn(topic: "registrations", batches)
        let reader = try TableReader(
            settings: kafka.settings, topics: ["registrations"], timeout: .seconds(15),
            now: .current,
            logger: Logger(label: "kafka", factory: { _ in SwiftLogNoOpLogHandler() }))
        defer { reader.close(timeout: .seconds(5)) }
        var seen: [Seen] = []
        try await waitUntil("the end of the log") {
            reader.clearWakeUp()
            _ = reader.poll(now: .current, limit: 100) { record in
                seen.append(
                    Seen(
                        offset: record.offset,
                        value: record.value.map { String(decoding: $0, as: UTF8.self) } ?? "",
                        time: record.timestampMilliseconds,
                        header: record.header(named: "h").map {
                            String(decoding: $0, as: UTF8.self)
                        }))
            }
            return reader.isCaughtUp
        }
        return seen
    }

    @Test func `are read once they are committed, and never of an aborted transaction`()
        async throws
    {
        let seen = try await read([
            Batch(values: ["before"]),
            Batch(kind: .transaction, producer: 1, values: ["aborted", "aborted too"]),
            Batch(kind: .transaction, producer: 2, values: ["committed"]),
            Batch(kind: .transaction, producer: 1, values: ["aborted as well"]),
            Batch(kind: .abort, producer: 1),
            Batch(kind: .commit, producer: 2),
            Batch(kind: .transaction, producer: 1, values: ["of the next transaction"]),
            Batch(kind: .commit, producer: 1),
            Batch(values: ["after"]),
        ])
        #expect(
            seen == [
                Seen(offset: 0, value: "before"), Seen(offset: 3, value: "committed"),
                Seen(offset: 7, value: "of the next transaction"), Seen(offset: 9, value: "after"),
            ])
    }

    /// The index is complete there, or the worker would wait for ever.
    @Test(arguments: [[], ["aborted"]])
    func `a log that ends with nothing to read is at its end`(aborted: [String]) async throws {
        var batches = [
            Batch(kind: .transaction, producer: 1, values: ["committed"]),
            Batch(kind: .commit, producer: 1),
        ]
        if !aborted.isEmpty {
            batches += [
                Batch(kind: .transaction, producer: 2, values: aborted),
                Batch(kind: .abort, producer: 2),
            ]
        }
        #expect(try await read(batches) == [Seen(offset: 0, value: "committed")])
    }

    @Test func `an open transaction holds back what follows it, and the end is before it`()
        async throws
    {
        let seen = try await read([
            Batch(values: ["before"]), Batch(kind: .transaction, producer: 1, values: ["open"]),
            Batch(values: ["after"]),
        ])
        #expect(seen == [Seen(offset: 0, value: "before")])
    }

    @Test func `have the time of their producer or of their broker`() async throws {
        let seen = try await read([
            Batch(values: ["created"], time: 1_700_000_000_007),
            Batch(values: ["appended"], time: 1_700_000_000_009, isAppendTime: true),
        ])
        #expect(
            seen == [
                Seen(offset: 0, value: "created", time: 1_700_000_000_007),
                Seen(offset: 1, value: "appended", time: 1_700_000_000_009),
            ])
    }

    @Test func `are read compressed, with their headers, and of a megabyte`() async throws {
        let large = String(repeating: "0123456789abcdef", count: 1 << 16)
        var compressed = Batch(
            kind: .transaction, producer: 1, values: ["a", "b"],
            headers: [["h", "first"], ["g", ""], ["h", "last"]])
        compressed.isCompressed = true
        let seen = try await read([
            compressed, Batch(kind: .commit, producer: 1), Batch(values: [large]),
        ])
        #expect(
            seen == [
                Seen(offset: 0, value: "a", header: "last"),
                Seen(offset: 1, value: "b", header: "last"), Seen(offset: 3, value: large),
            ])
    }
}
