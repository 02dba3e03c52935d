// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

private let start = MonotonicTime.after(.zero)

/// An event is owed to tokens registered within `registrationGrace` after it, so its offset may not
/// pass before.
@Suite struct `The registration grace period` {
    @Test func `an offset passes exactly when it was read that long ago`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 10)
        ledger.received(assignment, offset: 10, now: start)
        var committableOffsets: [Int64] = []
        for time in [Duration.zero, .seconds(2) - .nanoseconds(1), .seconds(2), .seconds(9)] {
            committableOffsets.append(ledger.committableOffset(assignment, now: .after(time)))
        }
        #expect(committableOffsets == [10, 10, 11, 11])
    }

    @Test func `an offset read later does not pass with the earlier one`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: start)
        _ = ledger.committableOffset(assignment, now: start)
        ledger.received(assignment, offset: 1, now: .after(.seconds(1)))
        _ = ledger.committableOffset(assignment, now: .after(.seconds(1)))
        var committableOffsets: [Int64] = []
        for time in [Duration.seconds(2), .seconds(3) - .nanoseconds(1), .seconds(3)] {
            committableOffsets.append(ledger.committableOffset(assignment, now: .after(time)))
        }
        #expect(committableOffsets == [1, 1, 2])
    }

    @Test func `the oldest record that is held or within its grace period is known by its reading`()
    {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let first = ledger.open(0, startOffset: 0)
        let second = ledger.open(1, startOffset: 0)
        func oldest() -> MonotonicTime? { ledger.oldestUncommittedReadAt }
        #expect(oldest() == nil)
        ledger.received(second, offset: 0, now: .after(.seconds(1)))
        _ = ledger.committableOffset(second, now: .after(.seconds(1)))
        #expect(oldest() == .after(.seconds(1)), "within its grace period")
        let claim = ledger.read(first, 0, now: .after(.seconds(2)))
        _ = ledger.committableOffset(second, now: .after(.seconds(4)))
        #expect(oldest() == .after(.seconds(2)), "held, and the other one is past")
        let later = ledger.read(first, 1, now: .after(.seconds(3)))
        _ = ledger.committableOffset(first, now: .after(.seconds(60)))
        _ = ledger.committableOffset(first, now: .after(.seconds(70)))
        ledger.release(claim)
        #expect(oldest() == .after(.seconds(3)))
        ledger.close(first)
        #expect(oldest() == nil, "another worker's")
        ledger.release(later)
    }

    @Test func `the oldest record without a grace period is the oldest that is held`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        // Two records are read between any two questions, as in a turn of the planner.
        for number in 0..<10 as Range<Int64> {
            let now = MonotonicTime.after(.seconds(number))
            ledger.received(assignment, offset: 2 * number, now: now)
            ledger.received(assignment, offset: 2 * number + 1, now: now)
            let committableOffset = ledger.committableOffset(assignment, now: now)
            #expect(committableOffset == 2 * number + 2)
        }
        let oldest = ledger.oldestUncommittedReadAt
        #expect(oldest == nil)
        let claim = ledger.read(assignment, 20, now: .after(.seconds(20)))
        _ = ledger.committableOffset(assignment, now: .after(.seconds(30)))
        let held = ledger.oldestUncommittedReadAt
        #expect(held == .after(.seconds(20)))
        ledger.release(claim)
    }

    @Test func `records that share a mark pass with the last of them, never with the first`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        for number in 0..<10 {
            ledger.received(
                assignment, offset: Int64(number), now: .after(.milliseconds(9 * number)))
        }
        _ = ledger.committableOffset(assignment, now: .after(.milliseconds(200)))
        for number in 0..<10 {
            let tooEarly = MonotonicTime.after(.milliseconds(9 * number + 2_000) - .nanoseconds(1))
            let committableOffset = ledger.committableOffset(assignment, now: tooEarly)
            #expect(committableOffset <= number)
        }
        let last = ledger.committableOffset(assignment, now: .after(.milliseconds(2_200)))
        #expect(last == 10)
    }

    @Test func `a claim holds an offset that is past its grace period`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        let claim = ledger.read(assignment, 0)
        ledger.received(assignment, offset: 1, now: start)
        let held = ledger.finalCommittableOffset(assignment)
        ledger.release(claim)
        let free = ledger.finalCommittableOffset(assignment)
        #expect([held, free] == [0, 2])
    }

    @Test func `an assignment is drained when all claims are back, within the grace period too`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        let claim = ledger.read(assignment, 0)
        let early = ledger.isDrained(assignment)
        ledger.release(claim)
        let late = ledger.isDrained(assignment)
        #expect(!early)
        #expect(late)
    }

    // MARK: Late claims

    @Test func `a claim made within the grace period holds the oldest offset beyond its end`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 4)
        ledger.received(assignment, offset: 4, now: start)
        let late = ledger.claimWithinGrace(assignment, now: .after(.seconds(1)))
        let held = ledger.finalCommittableOffset(assignment)
        #expect(held == 4)
        if let late { ledger.release(late) }
        let free = ledger.finalCommittableOffset(assignment)
        #expect(free == 5)
        #expect(ledger.claimCount == 0)
    }

    @Test func `late claims of one offset are one claim, which ends with the last reference`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: start)
        let first = ledger.claimWithinGrace(assignment, now: start)
        let second = ledger.claimWithinGrace(assignment, now: start)
        #expect(ledger.claimCount == 1)
        if let first { ledger.release(first) }
        let held = ledger.finalCommittableOffset(assignment)
        if let second { ledger.release(second) }
        let free = ledger.finalCommittableOffset(assignment)
        #expect([held, free] == [0, 1])
    }

    @Test func `a late claim is older than the claims of events read before it`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: start)
        let event = ledger.read(assignment, 1)
        let late = ledger.claimWithinGrace(assignment, now: start)
        ledger.checkInvariants()
        ledger.release(event)
        let held = ledger.finalCommittableOffset(assignment)
        if let late { ledger.release(late) }
        let free = ledger.finalCommittableOffset(assignment)
        #expect([held, free] == [0, 2])
    }

    @Test func `there is nothing to claim past the grace period, nor when the assignment ends`() {
        var ledger = OffsetTracker(registrationGrace: .seconds(2))
        let assignment = ledger.open(startOffset: 0)
        let fresh = ledger.claimWithinGrace(assignment, now: start)
        let claim = ledger.read(assignment, 0)
        _ = ledger.committableOffset(assignment, now: start)
        let past = ledger.claimWithinGrace(assignment, now: .after(.seconds(2)))
        ledger.received(assignment, offset: 1, now: .after(.seconds(2)))
        ledger.close(assignment)
        let closed = ledger.claimWithinGrace(now: .after(.seconds(2)))
        #expect(fresh == nil)
        #expect(past == nil)
        #expect(closed.isEmpty)
        ledger.release(claim)
    }

    @Test func `without a grace period there is never anything to claim`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        ledger.received(assignment, offset: 0, now: start)
        let late = ledger.claimWithinGrace(assignment, now: start)
        #expect(late == nil)
    }
}
