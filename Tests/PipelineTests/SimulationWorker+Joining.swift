// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// A push that a row of `deferred` may answer for, as it was before pushes were handed over.
struct JoinCandidate {
    let slot: UInt32
    let id: TokenID
    let token: SimulatedToken
    let key: [UInt8]
    let claims: [OffsetClaim]
}

/// Events that a row which waits for the gap answers for, without a record of their own.
extension SimulationWorker {
    struct Joined {
        let key: [UInt8]
        /// At which the row's content was first written.
        let offset: Int64
        let debts: [SimulationModel.Debt]
    }

    func joinCandidates(now: Now) -> [JoinCandidate] {
        guard pipeline.state.tokenGaps.isOn else { return [] }
        var candidates: [JoinCandidate] = []
        pipeline.state.pushes.forEachPush { slot in
            let push = pipeline.state.pushes[slot]
            let route = pipeline.routing[push.route]
            let bytes = Array(pipeline.state.audience.tokenBytes(of: push.token))
            let token = SimulatedToken(
                environment: route.environment, tokenClass: route.tokenClass, bytes: bytes)
            guard push.coalescingKey == 0, push.content.expiresAt > now.monotonic,
                !model.isSuppressed(token)
            else { return }
            let key = bytes.withUnsafeBufferPointer { token in
                RecordKey.deferred(route: route, token: token, coalescingKey: 0)
            }
            var claims: [OffsetClaim] = []
            pipeline.state.pushes.forEachClaim(of: slot) { claims.append($0) }
            candidates.append(
                JoinCandidate(slot: slot, id: push.token, token: token, key: key, claims: claims))
        }
        return candidates
    }

    /// Pushes were handed over. Those that have gone without a record, and were not dropped, are the
    /// rows' now.
    func noteJoins(
        _ candidates: [JoinCandidate], from position: Int
    ) throws(SimulationFailure) {
        for candidate in candidates {
            let push = pipeline.state.pushes[candidate.slot]
            guard push.state == .free || push.token != candidate.id || push.coalescingKey != 0,
                restrictions.action(for: candidate.token.tokenClass) != .drop,
                !pipeline.records[position...].contains(where: { $0.key == candidate.key })
            else { continue }
            let debts = model.joined(candidate.token, holding: holding(candidate.claims))
            joinedCount += 1
            guard !debts.isEmpty else { continue }
            guard
                let index = deferredAssignments.indices.first(where: { index in
                    deferredAssignments[index] != nil
                        && offsetOfRow(candidate, in: index) != nil
                }), let offset = offsetOfRow(candidate, in: index)
            else {
                throw SimulationFailure(text: "a push is gone, and no row owes it: \(debts)")
            }
            joined.append(Joined(key: candidate.key, offset: offset, debts: debts))
        }
    }

    /// At which offset the row that waits for this token's push was first written.
    private func offsetOfRow(_ candidate: JoinCandidate, in index: Int) -> Int64? {
        let id = pipeline.state.audience.tokenBytes(of: candidate.id)
        let route = pipeline.state.audience.route(of: candidate.id)
        let row = pipeline.deferral.table.row(
            route: route, token: id, coalescingKey: 0, assignment: deferredAssignments[index]!)
        guard let row, !pipeline.deferral.table.content(of: row).isSent,
            !pipeline.deferral.table.isTaken(row)
        else { return nil }
        return pipeline.deferral.table.offset(of: row)
    }

    /// When the token of this key was last sent a push, as its row has it.
    func lastSent(_ key: [UInt8]) -> MonotonicTime? {
        let end = pipeline.deferral.table.rowEnd
        for row in 1..<max(1, end) where pipeline.deferral.table.waitsUntil(row) != nil {
            let route = pipeline.routing[pipeline.deferral.table.route(of: row)]
            let token = Array(pipeline.deferral.table.tokenBytes(of: row))
            let own = token.withUnsafeBufferPointer { token in
                RecordKey.deferred(
                    route: route, token: token,
                    coalescingKey: pipeline.deferral.table.coalescingKey(of: row))
            }
            let time = pipeline.deferral.table.lastSent(of: row)
            if own == key, time.nanoseconds > .min { return time }
        }
        return nil
    }
}
