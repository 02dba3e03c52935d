// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

private let start = MonotonicTime.after(.zero)

@Suite struct `The ledger of claims` {
    @Test func `the ledger of claims stands at the start offset before anything is read`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 40)
        let committableOffset = ledger.committableOffset(assignment, now: start)
        let isDrained = ledger.isDrained(assignment)
        #expect(committableOffset == 40)
        #expect(isDrained)
    }

    @Test func `a record that nobody claims passes at once, across a gap of offsets`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: start)
        ledger.received(assignment, offset: 17, now: start)
        let committableOffset = ledger.committableOffset(assignment, now: start)
        #expect(committableOffset == 18)
        #expect(ledger.claimCount == 0)
    }

    @Test func `the oldest open event holds back those that ended before it`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        let first = ledger.read(assignment, 3)
        let second = ledger.read(assignment, 5)
        let third = ledger.read(assignment, 9)
        var committableOffsets: [Int64] = []
        for claim in [second, first, third] {
            committableOffsets.append(ledger.committableOffset(assignment, now: start))
            ledger.release(claim)
            ledger.checkInvariants()
        }
        committableOffsets.append(ledger.committableOffset(assignment, now: start))
        #expect(committableOffsets == [3, 3, 9, 10])
        #expect(ledger.claimCount == 0)
    }

    @Test func `an event ends with its last claim`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        let claim = ledger.read(assignment, 0)
        ledger.retain(claim)
        ledger.release(claim)
        let before = ledger.committableOffset(assignment, now: start)
        let wasDrained = ledger.isDrained(assignment)
        ledger.release(claim)
        let after = ledger.committableOffset(assignment, now: start)
        #expect(before == 0)
        #expect(!wasDrained)
        #expect(after == 1)
    }

    @Test func `assignments do not hold each other back`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let slow = ledger.open(0, startOffset: 0)
        let fast = ledger.open(1, startOffset: 100)
        let claim = ledger.read(slow, 0)
        ledger.received(fast, offset: 100, now: start)
        let committableOffsets = [
            ledger.committableOffset(slow, now: start), ledger.committableOffset(fast, now: start),
        ]
        #expect(committableOffsets == [0, 101])
        #expect(ledger.offset(of: claim) == 0)
        #expect(ledger.nextOffset(fast) == 101)
    }

    // MARK: Assignments that end

    @Test func `an assignment that is over is not found under the next one of its partition`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let old = ledger.open(3, epoch: 5, startOffset: 0)
        let other = ledger.open(0, epoch: 6, startOffset: 0)
        ledger.close(old)
        var found = [ledger.isOpen(old)]
        let new = ledger.open(3, epoch: 7, startOffset: 9)
        found += [ledger.isOpen(old), ledger.isOpen(new), ledger.isOpen(other)]
        #expect(found == [false, false, true, true])
        let open = ledger.open
        #expect(Set(open) == [new, other])
        let unknown = ledger.isOpen(AssignmentID(ordinal: 4, epoch: 7))
        #expect(!unknown, "nothing has this ordinal")
        ledger.checkInvariants()
    }

    @Test func `claims may come back after their partition has been given to us anew`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let old = ledger.open(startOffset: 0)
        let claims = [ledger.read(old, 0), ledger.read(old, 1)]
        ledger.close(old)
        let new = ledger.open(epoch: 2, startOffset: 0)
        let fresh = ledger.read(new, 0)
        var seen: [Int64] = []
        for claim in claims.reversed() {
            let position = ledger.position(of: claim)
            #expect(position == nil, "not ours any more")
            ledger.release(claim)
            ledger.checkInvariants()
            seen.append(ledger.committableOffset(new, now: start))
        }
        ledger.release(fresh)
        seen.append(ledger.committableOffset(new, now: start))
        #expect(seen == [0, 0, 1])
        #expect(ledger.claimCount == 0)
    }

    @Test func `a claim of an earlier assignment does not hold the next one of its partition`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let old = ledger.open(startOffset: 0)
        let late = ledger.read(old, 0)
        ledger.close(old)
        let new = ledger.open(epoch: 2, startOffset: 0)
        ledger.received(new, offset: 0, now: start)
        let before = ledger.committableOffset(new, now: start)
        ledger.release(late)
        let after = ledger.committableOffset(new, now: start)
        #expect([before, after] == [1, 1])
        #expect(ledger.claimCount == 0)
    }

    @Test func `an assignment begins afresh, whatever was read under the one before it`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let old = ledger.open(startOffset: 0)
        ledger.received(old, offset: 8, now: start)
        ledger.close(old)
        let new = ledger.open(epoch: 2, startOffset: 5)
        let committableOffset = ledger.committableOffset(new, now: start)
        #expect(committableOffset == 5)
        // The invariants say that nothing is kept of an assignment that is over and unclaimed.
        ledger.checkInvariants()
    }

    // MARK: Misuse traps

    @Test func `a claim given back twice traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            let assignment = ledger.open(startOffset: 0)
            let claim = ledger.read(assignment, 0)
            ledger.release(claim)
            ledger.release(claim)
        }
    }

    @Test func `an offset read twice in one assignment traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            let assignment = ledger.open(startOffset: 0)
            ledger.received(assignment, offset: 4, now: .after(.zero))
            ledger.received(assignment, offset: 4, now: .after(.zero))
        }
    }
    @Test func `a record of an earlier assignment of the partition traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            let old = ledger.open(startOffset: 0)
            ledger.close(old)
            _ = ledger.open(epoch: 2, startOffset: 0)
            ledger.received(old, offset: 0, now: .after(.zero))
        }
    }

    @Test func `a partition that is given to us twice traps`() async {
        await #expect(processExitsWith: .failure) {
            var ledger = OffsetTracker(registrationGrace: .zero)
            _ = ledger.open(startOffset: 0)
            _ = ledger.open(epoch: 2, startOffset: 0)
        }
    }
}
