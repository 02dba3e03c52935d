// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What an operator's drop could end in one call of the pipeline, as it was before the call.
struct DropWatch {
    struct Push {
        let slot: UInt32
        let id: TokenID
        let coalescingKey: UInt64
        let token: SimulatedToken
        /// Of `deferred`.
        let key: [UInt8]
        /// What it says replaces what others of its group say.
        let group: String
        let claims: [OffsetClaim]
        let hasFollowUp: Bool
        let isOfRow: Bool
        /// Whether it ends for another reason when its turn comes.
        let isOver: Bool
    }

    struct Row {
        let claim: OffsetClaim
        let key: [UInt8]
        let isOver: Bool
    }

    var pushes: [Push] = []
    var rows: [Row] = []
    /// What waits for a slot, and may be dropped in the same call that makes a push of it.
    var late: [(token: SimulatedToken, id: TokenID, claims: [OffsetClaim])] = []
    let counted: Int
}

/// A drop ends, and counts, the pushes that it covers as their turn comes; nothing else ends by it.
extension SimulationWorker {
    func watchDrops(world: SimulatedKafka, now: Now) -> DropWatch {
        var watch = DropWatch(counted: pipeline.counters.dropped)
        guard restrictions.areDroppingPushes else { return watch }
        var slots: [UInt32] = []
        pipeline.state.pushes.forEachPush { slots.append($0) }
        for slot in slots where isDropping(pipeline.state.pushes.route(of: slot)) {
            watch.pushes.append(candidate(slot, world: world, now: now))
        }
        for entry in pipeline.late.entries {
            let id = entry.entry.token
            let route = pipeline.routing[pipeline.state.audience.route(of: id)]
            let bytes = Array(pipeline.state.audience.tokenBytes(of: id))
            let token = SimulatedToken(
                environment: route.environment, tokenClass: route.tokenClass, bytes: bytes)
            watch.late.append((token, id, entry.claims))
        }
        for row in 1..<max(1, pipeline.deferral.table.rowEnd)
        where pipeline.deferral.table.waitsUntil(row) != nil {
            if let candidate = candidate(row: row, now: now) { watch.rows.append(candidate) }
        }
        return watch
    }

    private func isDropping(_ route: RouteID) -> Bool {
        restrictions.action(for: pipeline.routing[route].tokenClass) == .drop
    }

    private func candidate(_ slot: UInt32, world: SimulatedKafka, now: Now) -> DropWatch.Push {
        let push = pipeline.state.pushes[slot]
        let route = pipeline.routing[push.route]
        let bytes = Array(pipeline.state.audience.tokenBytes(of: push.token))
        let token = SimulatedToken(
            environment: route.environment, tokenClass: route.tokenClass, bytes: bytes)
        var claims: [OffsetClaim] = []
        pipeline.state.pushes.forEachClaim(of: slot) { claims.append($0) }
        let body =
            push.coalescingKey == 0
            ? nil
            : String(
                decoding: pipeline.state.pushes.bodies.body(push.content.body), as: UTF8.self)
        let isSuperseded =
            push.coalescingKey != 0 && pipeline.state.isSuperseded(slot)
        return DropWatch.Push(
            slot: slot, id: push.token, coalescingKey: push.coalescingKey, token: token,
            key: key(route, bytes, push.coalescingKey),
            group: body.map { world.payloads[$0]!.group } ?? "", claims: claims,
            hasFollowUp: push.hasFollowUp,
            isOfRow: claims.contains { pipeline.state.tracker.isOfTable($0) },
            isOver: push.content.expiresAt <= now.monotonic || model.isSuppressed(token)
                || isSuperseded)
    }

    private func candidate(row: UInt32, now: Now) -> DropWatch.Row? {
        let content = pipeline.deferral.table.content(of: row)
        let route = pipeline.deferral.table.route(of: row)
        guard !content.isSent, isDropping(route) else { return nil }
        let bytes = Array(pipeline.deferral.table.tokenBytes(of: row))
        let coalescingKey = pipeline.deferral.table.coalescingKey(of: row)
        var isOver = content.push.expiresAt <= now.monotonic
        if coalescingKey != 0 {
            let hash = bytes.withUnsafeBytes {
                pipeline.deferral.table.hash(route, $0, coalescingKey)
            }
            let age = pipeline.deferral.table.payloadAge(of: row)
            isOver = isOver || pipeline.state.payloadOrder.isSuperseded(hash, age: age)
        }
        return DropWatch.Row(
            claim: pipeline.deferral.table.claim(of: row),
            key: key(pipeline.routing[route], bytes, coalescingKey), isOver: isOver)
    }

    private func key(_ route: Route, _ token: [UInt8], _ coalescingKey: UInt64) -> [UInt8] {
        token.withUnsafeBufferPointer {
            RecordKey.deferred(route: route, token: $0, coalescingKey: coalescingKey)
        }
    }

    // MARK: What has ended

    /// Pushes were to be handed over: each that was dropped has had its turn.
    func noteDropsInTurn(_ watch: DropWatch, now: Now) throws(SimulationFailure) {
        var (least, most) = (0, 0)
        for push in watch.pushes {
            let isGone = isGone(push)
            let isFollowUpLeft = pipeline.state.pushes[push.slot].hasFollowUp
            guard isGone || push.hasFollowUp && !isFollowUpLeft else { continue }
            least += push.isOver ? 0 : 1
            // A follow-up may have had its turn at once, or a reason of its own to end.
            most += (push.isOver ? 0 : 1) + (isGone && push.hasFollowUp ? 1 : 0)
            end(push, now: now)
        }
        try requireCounted(watch, least...most)
    }

    /// The pipeline has done what was due: what would have been deferred is dropped instead, and so
    /// are rows of `deferred` whose time has come.
    func noteDropsByTime(_ watch: DropWatch, now: Now) throws(SimulationFailure) {
        var dropped = 0
        for push in watch.pushes where isGone(push) {
            dropped += push.hasFollowUp ? 2 : 1
            end(push, now: now)
        }
        for row in watch.rows {
            if let left = pipeline.deferral.table.row(of: row.claim),
                !pipeline.deferral.table.isTaken(left),
                !pipeline.deferral.table.content(of: left).isSent
            {
                continue
            }
            dropped += row.isOver ? 0 : 1
            rowsDroppedAt[row.key] = now.monotonic
        }
        guard pipeline.late.entries.count < watch.late.count else {
            return try requireCounted(watch, dropped...dropped)
        }
        // One late entry may ask for the pushes of several events.
        try requireCounted(watch, dropped...Int.max)
        for entry in watch.late where pipeline.state.existingPush(for: entry.id, key: 0) == nil {
            let isStillLate = pipeline.late.entries.contains { $0.entry.token == entry.id }
            guard !isStillLate, restrictions.action(for: entry.token.tokenClass) == .drop else {
                continue
            }
            model.notTold(entry.token, group: nil, holding: holding(entry.claims))
        }
    }

    /// This push's outcome was to be followed by another try, which would have been deferred.
    func noteDrop(of slot: UInt32, _ watch: DropWatch, now: Now) throws(SimulationFailure) {
        guard pipeline.counters.dropped > watch.counted else { return }
        let push = watch.pushes.first { $0.slot == slot }
        guard let push, isGone(push) else {
            throw SimulationFailure(text: "a push is dropped without an operator's word")
        }
        end(push, now: now)
        try requireCounted(watch, 1...1)
    }

    /// Its slot is free, or another push's: one of a row whose route nobody drops.
    private func isGone(_ push: DropWatch.Push) -> Bool {
        let now = pipeline.state.pushes[push.slot]
        return now.state == .free || now.token != push.id || now.coalescingKey != push.coalescingKey
    }

    private func requireCounted(
        _ watch: DropWatch, _ dropped: ClosedRange<Int>
    ) throws(SimulationFailure) {
        let counted = pipeline.counters.dropped - watch.counted
        try require(
            dropped.contains(counted),
            "\(counted) drops are counted, and there were \(dropped)")
    }

    private func end(_ push: DropWatch.Push, now: Now) {
        if push.isOfRow { rowsDroppedAt[push.key] = now.monotonic }
        let holds = holding(push.claims)
        // Of a follow-up nobody knows the claims before it is the push. If it has ended too, nothing
        // is left to tell; else what it alone has to tell is later than what the push held.
        let isAllOver = push.hasFollowUp && isGone(push)
        model.notTold(push.token, group: push.group) { isAllOver || holds($0) }
    }
}
