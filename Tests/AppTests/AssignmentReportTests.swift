// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `The report of an assignment` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }

    private func assignment(
        _ partition: Int32, _ reason: StartReason, skipped: Int64 = 0
    ) -> Assignment {
        Assignment(
            AssignmentID(ordinal: UInt32(partition), epoch: 1), topic: 0, partition: partition,
            startOffset: 70, reason: reason, skipped: skipped)
    }

    private func tell(_ assignments: [Assignment]) -> [String] {
        AssignmentReport.tell(
            assignments, topics: ["orders"], startFrom: .ago(.seconds(86_400)), logger: logger)
        return lines.taken()
    }

    @Test func `an assignment is told with where each partition starts, and why`() {
        #expect(
            tell([assignment(0, .committed), assignment(1, .beginning)]) == [
                "info assigned [partitions=2, starts=orders/0 at 70 (committed), "
                    + "orders/1 at 70 (beginning)]"
            ])
        #expect(tell([]) == ["info assigned [partitions=0]"])
    }

    @Test func `an assignment tells how many records are skipped where nothing is committed`() {
        let told = tell([
            assignment(0, .startFrom, skipped: 50), assignment(1, .startFrom, skipped: 20),
        ])
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("notice assigned [kafka.startFrom=86400s, ") == true)
        #expect(told.first?.contains("recordsSkipped=70") == true)
        #expect(told.first?.contains("orders/0 at 70 (startFrom, 50 skipped)") == true)
    }

    @Test func `an assignment of many partitions tells some, and all where details are wanted`() {
        let told = tell((0..<30).map { assignment($0, .committed) })
        #expect(told.count { $0.hasPrefix("debug reading starts [at=orders/") } == 30)
        let line = told.first { $0.hasPrefix("info") }
        #expect(line?.contains("startsNotNamed=10") == true)
        #expect(line?.contains("orders/19 at") == true && line?.contains("orders/20") == false)
    }
}
