// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import Planning
package import PushModel

/// How many more pushes of a pool a delivery thread takes.
package struct PoolRoom: Equatable, Sendable {
    /// Of all kinds; not negative.
    package var free: Int
    /// How many of these only prompt pushes may be.
    package let kept: Int

    package init(free: Int, kept: Int) {
        self.free = max(0, free)
        self.kept = kept
    }

    /// - Parameters:
    ///   - capacity: how many pushes the thread takes, and a sixteenth more of prompt ones.
    ///   - held: how many it has: more than that once a connection has gone.
    package init(capacity: Int, held: Int) {
        let kept = PatientShare.kept(of: capacity)
        self.init(free: capacity + kept - held, kept: kept)
    }

    /// How many pushes the part that is next may be; none where that is negative.
    func most(of part: SendingPart, _ share: PatientShare) -> Int {
        switch part {
        case .owed: min(share.owed, free)
        case .prompt: free
        case .patient: free - kept
        }
    }
}

/// Pushes go out.
extension PushPipeline {
    /// Hands over what is ready of one pool, in batches of prompt or of patient pushes, each complete
    /// in the slab; no more than there is room for and the pool's breaker allows.
    ///
    /// - Parameters:
    ///   - batch: takes one batch at a time.
    ///   - submit: is given each, and whether its pushes are patient.
    /// - Returns: how many there were in all, and whether a batch was full, so that there may be more.
    package mutating func handOver(
        _ pool: PoolID, _ room: PoolRoom, by batch: UnsafeMutableBufferPointer<PushSlot>, now: Now,
        submit: (UnsafeBufferPointer<PushSlot>, _ isPatient: Bool) -> Void
    ) -> (count: Int, isMore: Bool) {
        if state.pushes.hasQueued(in: PoolLine(pool, isPatient: true)) {
            return handOverBoth(pool, room, by: batch, now: now, submit: submit)
        }
        // Nearly always. Those that were owed something may have ended outside of a hand-over.
        shares[Int(pool.rawValue)] = PatientShare()
        let line = PoolLine(pool, isPatient: false)
        let most = min(room.free, batch.count)
        guard most > 0, state.pushes.hasQueued(in: line) else { return (0, false) }
        let taken = take(line, most: most, into: batch, now: now)
        if taken > 0 { submit(UnsafeBufferPointer(rebasing: batch[..<taken]), false) }
        return (taken, taken == batch.count)
    }

    /// Hands over while patient pushes wait, as they and prompt ones share the room.
    private mutating func handOverBoth(
        _ pool: PoolID, _ room: PoolRoom, by batch: UnsafeMutableBufferPointer<PushSlot>, now: Now,
        submit: (UnsafeBufferPointer<PushSlot>, _ isPatient: Bool) -> Void
    ) -> (count: Int, isMore: Bool) {
        var room = room
        var (count, isMore) = (0, false)
        let (row, patient) = (Int(pool.rawValue), PoolLine(pool, isPatient: true))
        for part in SendingPart.allCases {
            let most = min(room.most(of: part, shares[row]), batch.count)
            guard most > 0 else { continue }
            let line = part.isPatient ? patient : PoolLine(pool, isPatient: false)
            let taken = take(line, most: most, into: batch, now: now)
            if part.isPatient {
                shares[row].patientWent(taken)
            } else {
                shares[row].promptWent(taken, isWaitedFor: state.pushes.hasQueued(in: patient))
            }
            guard taken > 0 else { continue }
            submit(UnsafeBufferPointer(rebasing: batch[..<taken]), part.isPatient)
            room.free -= taken
            count += taken
            isMore = isMore || taken == batch.count
        }
        if !state.pushes.hasQueued(in: patient) { shares[row] = PatientShare() }
        return (count, isMore)
    }

    /// Whether a further port may be given pushes of this pool in this turn.
    package func mayHandOverMore(of pool: PoolID) -> Bool {
        !handover.isCutShort && state.pushes.hasQueued(in: pool)
    }

    private mutating func take(
        _ line: PoolLine, most: Int,
        into batch: UnsafeMutableBufferPointer<PushSlot>, now: Now
    ) -> Int {
        handover.take(
            line, into: UnsafeMutableBufferPointer(rebasing: batch[..<most]), &state,
            &deferral, now: now)
    }
}
