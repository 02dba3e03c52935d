// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

@Suite struct `The ledger's tracks and late claims` {
    private static let registrationGrace = Duration.seconds(2)

    @Test func `an offset has ended with its claims, whatever its grace period`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let assignment = ledger.open(startOffset: 3)
        var ended = [ledger.endedOffset(assignment)]
        ledger.received(assignment, offset: 4, now: .after(.zero))
        ended.append(ledger.endedOffset(assignment))
        let claim = ledger.read(assignment, 7)
        ledger.received(assignment, offset: 8, now: .after(.zero))
        ended.append(ledger.endedOffset(assignment))
        let late = ledger.claimWithinGrace(assignment, now: .after(.seconds(1)))
        ended.append(ledger.endedOffset(assignment))
        ledger.release(claim)
        ended.append(ledger.endedOffset(assignment))
        if let late { ledger.release(late) }
        ended.append(ledger.endedOffset(assignment))
        #expect(ended == [3, 5, 7, 3, 3, 9])
        let committableOffset = ledger.committableOffset(assignment, now: .after(.seconds(1)))
        #expect(committableOffset == 3)
    }

    @Test func `a late claim is shared with the newest one, whatever older ones stand`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: .after(.zero))
        let older = ledger.claimWithinGrace(assignment, now: .after(.zero))
        ledger.received(assignment, offset: 1, now: .after(.seconds(3)))
        let newer = (0..<3).map { _ in ledger.claimWithinGrace(assignment, now: .after(.seconds(3)))
        }
        #expect([older?.offset] + newer.map { $0?.offset } == [0, 1, 1, 1])
        #expect(ledger.claimCount == 2)
        ledger.checkInvariants()
    }

    @Test func `only rows of open tables are told when they end`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        ledger.release(ledger.read(assignment, 0))
        #expect(ledger.endedRows.isEmpty, "an event is no row")
        let table = AssignmentID(ordinal: 1, epoch: 2)
        ledger.openTable(table, partition: 0)
        let first = ledger.claimRow(table, offset: 0)
        let second = ledger.claimRow(table, offset: 1)
        ledger.release(first)
        #expect(ledger.endedRows == [first])
        _ = ledger.takeEndedRows()
        ledger.close(table)
        ledger.release(second)
        #expect(ledger.endedRows.isEmpty, "its row is another worker's by now")
    }

    @Test func `the next record notes when the one before was read, though nobody asks`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: .after(.zero))
        ledger.received(assignment, offset: 1, now: .after(.seconds(1)))
        let committableOffset = ledger.committableOffset(assignment, now: .after(.seconds(3)))
        #expect(committableOffset == 1)
    }
}
