// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// How prompt and patient pushes have shared what delivery takes: what the judge has counted himself.
struct SimulatedSharing {
    /// By pool: how many prompt pushes have gone since a patient one, while such waited.
    fileprivate var passed = [0, 0]
    /// How many prompt pushes have passed patient ones that waited on, and how many patient ones went
    /// because they were owed it.
    var promptFirst = 0
    var owed = 0
}

extension SimulationWorker {
    /// A push that is handed over, and as what.
    typealias HandedPush = (slot: PushSlot, isPatient: Bool)

    /// Hands over, and judges which pushes go where not all can.
    func handOverFairly(
        _ room: PoolRoom, pool: Int, now: Now
    ) throws(SimulationFailure) -> [PushSlot] {
        let batch = UnsafeMutableBufferPointer<PushSlot>.allocate(
            capacity: max(1, room.patient + room.kept))
        defer { batch.deallocate() }
        let owed = pipeline.shares[pool].owed
        let waitedBefore = !patientWaiting(in: pool).isEmpty
        var handed: [HandedPush] = []
        let result = pipeline.handOver(PoolID(rawValue: UInt16(pool)), room, by: batch, now: now) {
            slots, isPatient in
            for slot in slots { handed.append((slot, isPatient)) }
        }
        try require(result.count == handed.count, "the pushes handed over are miscounted")
        try require(handed.count <= room.patient + room.kept, "more than there is room for")
        let patient = handed.count(where: \.isPatient)
        try require(patient <= max(room.patient, owed), "patient pushes take what is kept")
        for (slot, isPatient) in handed {
            try require(isPatient == self.isPatient(slot), "a push in the wrong line")
        }
        try judgeShare(handed, in: pool, hadWaiting: waitedBefore, now: now)
        return handed.map(\.slot)
    }

    private func isPatient(_ slot: PushSlot) -> Bool {
        let content = pipeline.book.pushes[slot].content
        return content.isBulk || content.type.row.urgency == .background
    }

    private func patientWaiting(in pool: Int) -> [PushSlot] {
        var slots: [PushSlot] = []
        pipeline.book.pushes.forEachPush { slot in
            let push = pipeline.book.pushes[slot]
            if push.state == .queued, isPatient(slot),
                Int(pipeline.routing[push.route].pool.rawValue) == pool
            {
                slots.append(slot)
            }
        }
        return slots
    }

    private func judgeShare(
        _ handed: [HandedPush], in pool: Int, hadWaiting: Bool, now: Now
    ) throws(SimulationFailure) {
        let isOwed = hadWaiting && sharing.passed[pool] >= PatientShare.promptForEach
        let waiting = patientWaiting(in: pool)
        if isOwed, !handed.contains(where: \.isPatient), !pipeline.handover.isCutShort {
            let left = waiting.filter { slot in
                let route = pipeline.book.pushes.route(of: slot)
                return pipeline.breakers.isClosed(route)
                    && pipeline.breakers.allowsOneMore(route, now: now.monotonic)
            }
            try require(left.isEmpty, "patient pushes starve: \(left.count) of pool \(pool)")
        }
        if isOwed, let first = handed.first, first.isPatient { sharing.owed += 1 }
        for push in handed {
            sharing.passed[pool] = push.isPatient || !hadWaiting ? 0 : sharing.passed[pool] + 1
        }
        if waiting.isEmpty { sharing.passed[pool] = 0 }
        if handed.contains(where: { !$0.isPatient }), !waiting.isEmpty { sharing.promptFirst += 1 }
    }
}
