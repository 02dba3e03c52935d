// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// How prompt and patient pushes have shared what delivery takes, as the judge has counted it.
struct SimulatedSharing {
    /// By pool: how many prompt pushes have gone past patient ones, less nine for each of these that
    /// has gone.
    fileprivate var passed = [0, 0]
    /// How many hand-overs had prompt pushes pass patient ones that waited on, and how many patient
    /// ones because they were owed it.
    var promptFirst = 0
    var owed = 0

    fileprivate mutating func went(_ isPatient: Bool, in pool: Int) {
        let most = PatientShare.owedMax * PatientShare.promptForEach
        passed[pool] =
            isPatient
            ? max(0, passed[pool] - PatientShare.promptForEach) : min(most, passed[pool] + 1)
    }
}

extension SimulationWorker {
    /// A push that is handed over, and as what.
    typealias HandedPush = (slot: PushSlot, isPatient: Bool)

    /// Hands over, and judges which pushes go where not all can.
    func handOverFairly(
        _ room: PoolRoom, pool: Int, now: Now
    ) throws(SimulationFailure) -> [PushSlot] {
        let batch = UnsafeMutableBufferPointer<PushSlot>.allocate(capacity: max(1, room.free))
        defer { batch.deallocate() }
        let before = (prompt: waiting(false, in: pool), patient: waiting(true, in: pool))
        if before.patient.isEmpty { sharing.passed[pool] = 0 }
        var handed: [HandedPush] = []
        let result = pipeline.handOver(PoolID(rawValue: UInt16(pool)), room, by: batch, now: now) {
            slots, isPatient in
            for slot in slots { handed.append((slot, isPatient)) }
        }
        try require(result.count == handed.count, "the pushes handed over are miscounted")
        try require(handed.count <= room.free, "more than there is room for")
        for (slot, isPatient) in handed {
            try require(isPatient == self.isPatient(slot), "a push in the wrong line")
        }
        try judgeOrder(handed, room, pool: pool, before: before, now: now)
        count(handed, in: pool, hadPatient: !before.patient.isEmpty)
        return handed.map(\.slot)
    }

    private func isPatient(_ slot: PushSlot) -> Bool {
        let content = pipeline.state.pushes[slot].content
        return content.isBulk || content.type.row.urgency == .background
    }

    private func waiting(_ isPatient: Bool, in pool: Int) -> Set<PushSlot> {
        var slots: Set<PushSlot> = []
        pipeline.state.pushes.forEachPush { slot in
            let push = pipeline.state.pushes[slot]
            if push.state == .queued, self.isPatient(slot) == isPatient,
                Int(pipeline.routing[push.route].pool.rawValue) == pool
            {
                slots.insert(slot)
            }
        }
        return slots
    }

    private func mayGo(_ slot: PushSlot, now: Now) -> Bool {
        let route = pipeline.state.pushes.route(of: slot)
        return pipeline.state.breakers.isClosed(route)
            && pipeline.state.breakers.allowsOneMore(route, now: now.monotonic)
    }

    /// - Parameter before: the pushes that waited before the hand-over: one that ends unsent may leave
    ///   a follow-up of the other kind in its slot.
    private func judgeOrder(
        _ handed: [HandedPush], _ room: PoolRoom, pool: Int,
        before: (prompt: Set<PushSlot>, patient: Set<PushSlot>), now: Now
    ) throws(SimulationFailure) {
        let owed = sharing.passed[pool] / PatientShare.promptForEach
        let patient = handed.count(where: \.isPatient)
        try require(patient <= max(room.free - room.kept, owed), "patient pushes take what is kept")
        // Where too many are held back the others are for the next turn.
        guard !pipeline.handover.isCutShort else { return }
        if patient > owed {
            let passed = waiting(false, in: pool).intersection(before.prompt)
                .filter { mayGo($0, now: now) }
            try require(passed.isEmpty, "patient pushes pass prompt ones: \(passed.sorted())")
        }
        if owed > 0, patient == 0, room.free > 0 {
            let left = waiting(true, in: pool).intersection(before.patient)
                .filter { mayGo($0, now: now) }
            try require(left.isEmpty, "patient pushes starve: \(left.sorted())")
        }
        if owed > 0, handed.contains(where: { $0.isPatient && before.patient.contains($0.slot) }) {
            try require(handed[0].isPatient, "what is owed goes after others")
        }
    }

    private func count(_ handed: [HandedPush], in pool: Int, hadPatient: Bool) {
        let owed = sharing.passed[pool] / PatientShare.promptForEach
        sharing.owed += min(owed, handed.count(where: \.isPatient))
        guard hadPatient else { return }
        for push in handed { sharing.went(push.isPatient, in: pool) }
        let waiting = waiting(true, in: pool)
        if waiting.isEmpty { sharing.passed[pool] = 0 }
        if handed.contains(where: { !$0.isPatient }), !waiting.isEmpty { sharing.promptFirst += 1 }
    }
}
