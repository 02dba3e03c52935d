// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

@Suite struct `Reports of unmatched events and of what is set aside` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }

    private func at(_ seconds: Int64) -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
            wall: WallTime(milliseconds: seconds * 1000))
    }

    private func unmatched(
        _ count: Int, _ subjects: String..., topic: String = "doors"
    ) -> WorkerStatus.UnmatchedSubjects {
        WorkerStatus.UnmatchedSubjects(
            topic: topic, count: count,
            sample: subjects.map { .init(subject: $0, at: WallTime(milliseconds: 0)) })
    }

    @Test func `subjects that nobody shows are told at once and then once a minute`() {
        var report = UnmatchedReport()
        report.report([unmatched(0)], passedOver: [], now: at(0), logger: logger)
        #expect(lines.taken().isEmpty)
        report.report(
            [unmatched(1204, "dor-9", "dor-1")], passedOver: [], now: at(5), logger: logger)
        #expect(
            lines.taken() == [
                "notice events named subjects that nobody shows "
                    + "[events=1204, example=dor-1, topic=doors]"
            ])
        for second in 6..<65 as Range<Int64> {
            report.report(
                [unmatched(1204 + Int(second), "dor-1")], passedOver: [], now: at(second),
                logger: logger)
        }
        #expect(lines.taken().isEmpty, "the minute is not over")
        report.report([unmatched(1205, "dor\n2")], passedOver: [], now: at(65), logger: logger)
        #expect(
            lines.taken() == [
                "notice events named subjects that nobody shows "
                    + "[events=1, example=dor\\u{a}2, topic=doors]"
            ])
        for second in 125..<300 as Range<Int64> {
            report.report(
                [unmatched(1205, "dor-1")], passedOver: [], now: at(second), logger: logger)
        }
        #expect(lines.taken().isEmpty, "none came")
    }

    @Test func `topics are told apart, and without an example where no event has a subject`() {
        var report = UnmatchedReport()
        report.report(
            [unmatched(2), unmatched(1_000_000, "x", topic: "lamps")], passedOver: [],
            now: at(1), logger: logger)
        #expect(
            lines.taken() == [
                "notice events named subjects that nobody shows [events=2, topic=doors]",
                "notice events named subjects that nobody shows "
                    + "[events=1000000, example=x, topic=lamps]",
            ])
    }

    @Test func `subjects shown by no token of the events are told apart, with the reason`() {
        var report = UnmatchedReport()
        func tell(_ passed: Int, at second: Int64) -> [String] {
            report.report(
                [unmatched(1, "dor")], passedOver: [unmatched(passed, "door")], now: at(second),
                logger: logger)
            return lines.taken()
        }
        #expect(
            tell(1, at: 1) == [
                "notice events named subjects that nobody shows "
                    + "[events=1, example=dor, topic=doors]",
                "notice events named subjects that are shown by no token of their classes, "
                    + "kinds, environment or push type [events=1, example=door, topic=doors]",
            ])
        #expect(tell(5, at: 30).isEmpty)
        #expect(
            tell(1205, at: 61) == [
                "notice events named subjects that are shown by no token of their classes, "
                    + "kinds, environment or push type [events=1204, example=door, topic=doors]"
            ])
    }

    @Test func `what is set aside is told by its totals, once a minute while they grow`() {
        var report = SetAsideReport()
        func counts(_ unknown: Int, rows: Int) -> [WorkerStatus.SetAsideCount] {
            [
                .init(
                    topic: "registrations", unit: "records", reason: "invalidJSON", count: 1),
                .init(
                    topic: "registrations", unit: "records", reason: "unknownApp", count: unknown),
                .init(topic: "registrations", unit: "rows", reason: "unroutable", count: rows),
            ]
        }
        report.report([], now: at(0), logger: logger)
        report.report(counts(2999, rows: 7), now: at(5), logger: logger)
        #expect(
            lines.taken() == [
                "notice some have been set aside since the start, by reason "
                    + "[invalidJSON=1, new=3000, of=records, topic=registrations, total=3000, "
                    + "unknownApp=2999]",
                "notice some have been set aside since the start, by reason "
                    + "[new=7, of=rows, topic=registrations, total=7, unroutable=7]",
            ])
        for second in 6..<65 as Range<Int64> {
            report.report(counts(3000 + Int(second), rows: 7), now: at(second), logger: logger)
        }
        #expect(lines.taken().isEmpty)
        report.report(counts(3099, rows: 7), now: at(65), logger: logger)
        #expect(
            lines.taken() == [
                "notice some have been set aside since the start, by reason "
                    + "[invalidJSON=1, new=100, of=records, topic=registrations, total=3100, "
                    + "unknownApp=3099]"
            ])
    }

    @Test func `misplaced records are told once a minute, by their place and without their key`() {
        var report = MisplacedReport()
        func tell(_ count: Int, at second: Int64) -> [String] {
            report.report(
                [.sample(of: "registrations", count)], now: at(second), logger: logger)
            return lines.taken()
        }
        #expect(tell(0, at: 0).isEmpty)
        #expect(
            tell(4, at: 1) == [
                "warning records are not in the partitions of their keys, so an older one may win "
                    + "after a restart: set partitioner=murmur2_random in their producer, "
                    + "unless the topic has just got more partitions, and write "
                    + "them again [belongsInPartition=5, offset=17, partition=3, records=4, "
                    + "topic=registrations]"
            ])
        #expect(tell(9, at: 30).isEmpty)
        #expect(tell(9, at: 61).count == 1)
        #expect(tell(9, at: 600).isEmpty)
    }
}
