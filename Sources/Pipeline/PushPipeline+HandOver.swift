// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import Planning
package import PushModel

/// How many more pushes of a pool a delivery thread takes.
package struct PoolRoom: Equatable, Sendable {
    /// Patient pushes; negative where prompt ones have what is kept for them.
    package var patient: Int
    /// What is kept for prompt pushes beside that.
    package var kept: Int

    package init(patient: Int, kept: Int) {
        self.patient = patient
        self.kept = kept
    }

    /// - Parameters:
    ///   - capacity: how many pushes the thread takes; prompt ones may be a sixteenth more.
    ///   - held: how many it has.
    package init(capacity: Int, held: Int) {
        self.init(patient: capacity - held, kept: PatientShare.kept(of: capacity))
    }

    /// How many pushes the part that is next may be.
    func most(of part: SendingPart, _ share: PatientShare) -> Int {
        switch part {
        case .owed: min(share.owed, patient + kept)
        case .prompt: patient + kept
        case .patient: patient
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
        if book.pushes.hasQueued(in: PoolLine(pool, isPatient: true)) {
            return handOverBoth(pool, room, by: batch, now: now, submit: submit)
        }
        // Nearly always: what the two lines share costs such a hand-over nothing.
        let line = PoolLine(pool, isPatient: false)
        let most = min(room.patient + room.kept, batch.count)
        guard most > 0, book.pushes.hasQueued(in: line) else { return (0, false) }
        let taken = take(line, of: pool, most: most, into: batch, now: now)
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
            let taken = take(line, of: pool, most: most, into: batch, now: now)
            if part.isPatient {
                shares[row].patientWent(taken)
            } else {
                shares[row].promptWent(taken, isWaitedFor: book.pushes.hasQueued(in: patient))
            }
            guard taken > 0 else { continue }
            submit(UnsafeBufferPointer(rebasing: batch[..<taken]), part.isPatient)
            room.patient -= taken
            count += taken
            isMore = isMore || taken == batch.count
        }
        if !book.pushes.hasQueued(in: patient) { shares[row] = PatientShare() }
        return (count, isMore)
    }

    private mutating func take(
        _ line: PoolLine, of pool: PoolID, most: Int,
        into batch: UnsafeMutableBufferPointer<PushSlot>, now: Now
    ) -> Int {
        handover.take(
            line, of: pool, into: UnsafeMutableBufferPointer(rebasing: batch[..<most]), &book,
            &breakers, &deferral, &outbox, now: now)
    }
}
