// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel
internal import Telemetry
internal import Testing

@testable internal import Worker

/// A clock that is far ahead of the records that are being written reads no events.
@Suite struct `The hold of events by a clock far ahead of Kafka's` {
    private let id = AssignmentID(ordinal: 0, epoch: 1)
    private let hour = Duration.seconds(3600)
    private let day = Duration.seconds(86_400)

    /// Whether an event is held, of a record so old, where the clock is so far ahead.
    private func holds(
        _ hold: inout ClockHold, _ id: AssignmentID? = nil, age: Duration, lead: Duration?
    ) -> Bool {
        hold.holds(id ?? self.id, age: age, lead: lead, life: hour)
    }

    @Test func `holds an event that was written while the worker read, and no backlog`() {
        var hold = ClockHold()
        let isBacklogHeld = holds(&hold, age: day, lead: nil)
        #expect(!isBacklogHeld, "it may have waited for a day")
        hold.reachedEnd(id)
        let isHeld = holds(&hold, age: day, lead: nil)
        let isOtherHeld = holds(&hold, AssignmentID(ordinal: 1, epoch: 1), age: day, lead: day)
        #expect(isHeld && isOtherHeld, "the clock is the same")
        var next = ClockHold()
        next.reachedEnd(id)
        next.forget(id)
        let isNextHeld = holds(&next, age: day, lead: nil)
        #expect(!isNextHeld, "the partition is read anew")
    }

    @Test func `holds nothing where any record is as new as the clock says`() {
        // An event is worth a push for an hour. Of a day's age and a lead of less than 23 hours it has
        // expired by the records' times, too.
        for (age, lead, isHeld) in [
            (day, 600, false), (day, 82_800, false), (day, 82_801, true), (day, nil, true),
            (.seconds(3900), 600, false), (.seconds(3900), 601, true),
            // It is late, and is read.
            (.seconds(3599), nil, false), (hour, nil, true),
        ] as [(Duration, Int?, Bool)] {
            var hold = ClockHold()
            hold.reachedEnd(id)
            let holds = holds(&hold, age: age, lead: lead.map { .seconds($0) })
            #expect(holds == isHeld, "\(age), \(lead ?? -1)")
        }
    }

    @Test func `holds an event no longer than it is worth a push by the records' times`() {
        var hold = ClockHold()
        hold.readNewRecord()
        let isHeld = holds(&hold, age: day + .seconds(3599), lead: day)
        let isHeldLonger = holds(&hold, age: day + .seconds(3600), lead: day)
        #expect(isHeld && !isHeldLonger)
    }

    @Test func `is told once, with what waits, and once when nothing does`() {
        let lines = LogLines()
        let logger = Logger(label: "test") { _ in LineHandler(lines: lines) }
        var report = ClockReport()
        report.report(ClockDoubt(), logger: logger)
        #expect(lines.taken().isEmpty)
        for count in 1...2 {
            report.report(
                ClockDoubt(deferred: count, partitions: 0, lead: day), logger: logger)
        }
        let told = lines.taken()
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("warning this worker's clock is ahead of every") == true)
        #expect(
            told.first?.hasSuffix("[aheadSeconds=86400, deferred=1, partitions=0]") == true)
        for _ in 0..<2 { report.report(ClockDoubt(), logger: logger) }
        #expect(lines.taken() == ["notice nothing waits for this worker's clock any more []"])
    }

    @Test func `is told in the status and the metrics`() {
        var status = WorkerStatus.well(.running)
        status.clockDoubt = ClockDoubt(deferred: 3000, partitions: 2, lead: day)
        let problems = Diagnosis(status).problems
        #expect(problems.count == 1)
        #expect(problems[0].severity == .warning)
        #expect(
            problems[0].summary.contains("3,000 deferred pushes and the events of 2 partitions"))
        let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        for line in ["deferred_held_back 3000", "partitions_held_by_clock 2"] {
            #expect(text.contains("\nlamplighter_\(line)\n"), "\(line)")
        }
    }

    @Test func `a start without the restrictions is told in the status and the metrics`() {
        for lacks in [true, false] {
            var status = WorkerStatus.well(.running)
            status.lacksRestrictions = lacks
            #expect(Diagnosis(status).problems.map(\.severity) == (lacks ? [.error] : []))
            let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
            #expect(text.contains("\nlamplighter_restrictions_unread \(lacks ? 1 : 0)\n"))
        }
    }
}
