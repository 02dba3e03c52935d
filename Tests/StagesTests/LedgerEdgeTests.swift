// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

@Suite struct `The ledger at its edges` {
    private static let registrationGrace = Duration.seconds(2)

    @Test func `a track is past its grace period though an event of it is still claimed`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let track = ledger.openTrack(startOffset: 0)
        let hold = ledger.read(track, 0)
        _ = ledger.committableOffset(track, now: .after(.zero))
        let early = ledger.isPastGrace(track, now: .after(Self.registrationGrace - .nanoseconds(1)))
        let past = ledger.isPastGrace(track, now: .after(Self.registrationGrace))
        let drained = ledger.isDrained(track, now: .after(Self.registrationGrace))
        #expect([early, past, drained] == [false, true, false])
        ledger.release(hold)
    }

    @Test func `a pin shares the holder of the newest one, whatever older ones stand`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let track = ledger.openTrack(startOffset: 0)
        ledger.received(track, offset: 0, now: .after(.zero))
        let older = ledger.pinWithinGrace(track, now: .after(.zero))
        ledger.received(track, offset: 1, now: .after(.seconds(3)))
        let newer = (0..<3).map { _ in ledger.pinWithinGrace(track, now: .after(.seconds(3))) }
        #expect([older?.offset] + newer.map { $0?.offset } == [0, 1, 1, 1])
        #expect(ledger.holderCount == 2)
        ledger.checkInvariants()
    }

    @Test func `only rows of open tables are told when they end`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let track = ledger.openTrack(startOffset: 0)
        ledger.release(ledger.read(track, 0))
        #expect(ledger.endedRows.isEmpty, "an event is no row")
        let table = ledger.openTable()
        let first = ledger.holdRow(table, offset: 0)
        let second = ledger.holdRow(table, offset: 1)
        ledger.release(first)
        #expect(ledger.endedRows == [first])
        _ = ledger.takeEndedRows()
        ledger.closeTrack(table)
        ledger.release(second)
        #expect(ledger.endedRows.isEmpty, "its row is another worker's by now")
    }

    @Test func `the next record notes when the one before was read, though nobody asks`() {
        var ledger = OffsetTracker(registrationGrace: Self.registrationGrace)
        let track = ledger.openTrack(startOffset: 0)
        ledger.received(track, offset: 0, now: .after(.zero))
        ledger.received(track, offset: 1, now: .after(.seconds(1)))
        let committableOffset = ledger.committableOffset(track, now: .after(.seconds(3)))
        #expect(committableOffset == 1)
    }
}
