// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Logging
internal import Pipeline
internal import PushModel
internal import SchemaCodecs
internal import Testing

@testable internal import Worker

@Suite struct `Held partitions` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }

    private func at(_ seconds: Int64) -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
            wall: WallTime(milliseconds: seconds * 1000))
    }

    private func record(_ offset: Int64) -> HeldPartitions.Record {
        HeldPartitions.Record(
            partition: 3, offset: offset,
            content: TrialRecord(
                binding: 0, key: nil, value: nil, timestamp: WallTime(milliseconds: 0)))
    }

    @Test func `keep their records in order until all were read`() {
        let id = AssignmentID(ordinal: 0, epoch: 1)
        var held = HeldPartitions()
        #expect(held.isEmpty)
        held.hold(
            id, at: record(5), for: .schema(AwaitedSchema(schema: SchemaID(rawValue: 7))),
            now: at(0).monotonic)
        held.append(record(6), to: id)
        #expect(held.isHeld(id) && held.partitions[id]?.records.map(\.offset) == [5, 6])
        let isReleasedEarly = held.removeFirst(1, of: id)
        #expect(!isReleasedEarly)
        #expect(held.partitions[id]?.records.map(\.offset) == [6])
        let isReleased = held.removeFirst(1, of: id)
        #expect(isReleased && held.isEmpty)
    }

    @Test func `are forgotten with their assignment`() {
        let id = AssignmentID(ordinal: 0, epoch: 1)
        var held = HeldPartitions()
        held.hold(
            id, at: record(5), for: .schema(AwaitedSchema(schema: SchemaID(rawValue: 7))),
            now: at(0).monotonic)
        held.forget(id)
        #expect(held.isEmpty)
    }

    private func held(_ seconds: Double, cause: String? = nil) -> WorkerStatus.HeldPartition {
        WorkerStatus.HeldPartition(
            topic: "orders", partition: 3, offset: 12, schema: 7, cause: cause,
            held: .seconds(seconds))
    }

    @Test func `are logged when they last, once a minute, and at their end`() {
        var report = HeldReport()
        report.report([], now: at(0), logger: logger)
        report.report([held(0.5)], now: at(1), logger: logger)
        report.report([], now: at(2), logger: logger)
        #expect(lines.taken().isEmpty)
        let warning =
            "warning partitions are held until the schema registry gives the schemas of their "
            + "records [cause=http://registry answers 503, partition=orders/3/12, partitions=1, schema=7]"
        for second in 3..<63 as Range<Int64> {
            report.report(
                [held(2, cause: "http://registry answers 503")], now: at(second), logger: logger)
        }
        #expect(lines.taken() == [warning])
        report.report(
            [held(2, cause: "http://registry answers 503")], now: at(63), logger: logger)
        #expect(lines.taken() == [warning])
        report.report([], now: at(64), logger: logger)
        report.report([], now: at(65), logger: logger)
        #expect(lines.taken() == ["notice no partition waits for a schema any more []"])
    }

    @Test func `are a problem with partition, schema and cause`() {
        var status = WorkerStatus.well()
        status.held = [held(4)]
        #expect(Diagnosis(status).problems.isEmpty)
        status.held = [held(9, cause: "http://registry answers 503"), held(6)]
        #expect(
            Diagnosis(status).summary
                == "2 partitions of this worker are held: orders/3 waits at offset 12 for schema 7, "
                + "and http://registry answers 503. Bring the schema registry back, or correct "
                + "kafka.schemaRegistry; the worker asks again by itself, and loses nothing.")
    }
}
