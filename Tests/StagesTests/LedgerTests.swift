// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

private let start = MonotonicTime.after(.zero)

@Suite struct `The ledger of holders` {
    @Test func `stands at the start offset before anything is read`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let track = ledger.openTrack(startOffset: 40)
        let committableOffset = ledger.committableOffset(track, now: start)
        let isDrained = ledger.isDrained(track, now: start)
        #expect(committableOffset == 40)
        #expect(isDrained)
    }

    @Test func `a record that nobody claims passes at once, across a gap of offsets`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let track = ledger.openTrack(startOffset: 0)
        ledger.received(track, offset: 0, now: start)
        ledger.received(track, offset: 17, now: start)
        let committableOffset = ledger.committableOffset(track, now: start)
        #expect(committableOffset == 18)
        #expect(ledger.holderCount == 0)
    }

    @Test func `the oldest open event holds back those that ended before it`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let track = ledger.openTrack(startOffset: 0)
        let first = ledger.read(track, 3)
        let second = ledger.read(track, 5)
        let third = ledger.read(track, 9)
        var committableOffsets: [Int64] = []
        for hold in [second, first, third] {
            committableOffsets.append(ledger.committableOffset(track, now: start))
            ledger.release(hold)
            ledger.checkInvariants()
        }
        committableOffsets.append(ledger.committableOffset(track, now: start))
        #expect(committableOffsets == [3, 3, 9, 10])
        #expect(ledger.holderCount == 0)
    }

    @Test func `an event ends with its last claim`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let track = ledger.openTrack(startOffset: 0)
        let hold = ledger.read(track, 0)
        ledger.retain(hold)
        ledger.release(hold)
        let before = ledger.committableOffset(track, now: start)
        let wasDrained = ledger.isDrained(track, now: start)
        ledger.release(hold)
        let after = ledger.committableOffset(track, now: start)
        #expect(before == 0)
        #expect(!wasDrained)
        #expect(after == 1)
    }

    @Test func `tracks do not hold each other back`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let slow = ledger.openTrack(startOffset: 0)
        let fast = ledger.openTrack(startOffset: 100)
        let hold = ledger.read(slow, 0)
        ledger.received(fast, offset: 100, now: start)
        let committableOffsets = [
            ledger.committableOffset(slow, now: start), ledger.committableOffset(fast, now: start),
        ]
        #expect(committableOffsets == [0, 101])
        #expect(ledger.offset(of: hold) == 0)
        #expect(ledger.nextOffset(fast) == 101)
    }

    // MARK: Assignments that end

    @Test func `a closed track's number is given again only after its last claim is back`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let old = ledger.openTrack(startOffset: 0)
        let hold = ledger.read(old, 0)
        let other = ledger.read(old, 1)
        ledger.closeTrack(old)
        let meanwhile = ledger.openTrack(startOffset: 0)
        ledger.release(other)
        let stillMeanwhile = ledger.openTrack(startOffset: 0)
        ledger.release(hold)
        let again = ledger.openTrack(startOffset: 7)
        #expect(meanwhile != old)
        #expect(stillMeanwhile != old)
        #expect(again == old)
        let committableOffset = ledger.committableOffset(again, now: start)
        #expect(committableOffset == 7)
        ledger.checkInvariants()
    }

    @Test func `a claim of an earlier assignment does not hold the next one of its partition`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let old = ledger.openTrack(startOffset: 0)
        let late = ledger.read(old, 0)
        ledger.closeTrack(old)
        let new = ledger.openTrack(startOffset: 0)
        ledger.received(new, offset: 0, now: start)
        let before = ledger.committableOffset(new, now: start)
        ledger.release(late)
        let after = ledger.committableOffset(new, now: start)
        #expect([before, after] == [1, 1])
        #expect(ledger.holderCount == 0)
    }

    @Test func `a closed track with nothing claimed gives its number back at once`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let old = ledger.openTrack(startOffset: 0)
        ledger.received(old, offset: 0, now: start)
        ledger.closeTrack(old)
        let new = ledger.openTrack(startOffset: 5)
        let committableOffset = ledger.committableOffset(new, now: start)
        #expect(new == old)
        #expect(committableOffset == 5)
    }

    // MARK: Misuse traps

    @Test func `a claim given back twice traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            let track = ledger.openTrack(startOffset: 0)
            let hold = ledger.read(track, 0)
            ledger.release(hold)
            ledger.release(hold)
        }
    }

    @Test func `an offset read twice in one assignment traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            let track = ledger.openTrack(startOffset: 0)
            ledger.received(track, offset: 4, now: .after(.zero))
            ledger.received(track, offset: 4, now: .after(.zero))
        }
    }
}
