// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The minimum gap: whoever sends, two pushes without a payload to one token are apart.
extension SimulationWorker {
    /// Whether the push is handed over though its gap is kept in `deferred` and it comes from no row.
    func goesWithoutGap(_ slot: UInt32) -> Bool {
        let push = pipeline.state.pushes[slot]
        if push.isAnnounced { return false }
        guard
            case .long = pipeline.state.tokenGaps.gap(
                of: push.route, coalescingKey: push.coalescingKey)
        else { return false }
        return pipeline.counters.pushesWithoutGap > 0
    }

    /// The push in this slot is about to be handed over. A further try of one push is not another.
    func checkGap(
        of slot: UInt32, token: SimulatedToken, world: SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        let push = pipeline.state.pushes[slot]
        guard push.attempts == 0 else { return }
        switch pipeline.state.tokenGaps.gap(of: push.route, coalescingKey: push.coalescingKey) {
        case .none: return
        case .short(let gap):
            // A token that nobody shows is forgotten with all that is known of it.
            if let left = model.unregisteredAt[token], let at = acceptedAt[token], left >= at {
                return
            }
            try require(
                acceptedAt[token].map { now.monotonic - $0 >= gap } ?? true,
                "a push to \(token) within the gap that its worker keeps")
        case .long where world.tokensWithoutTime.contains(token): return
        case .long(let gap):
            if goesWithoutGap(slot) { return }
            try require(
                world.sentAt[token].map { now.monotonic - $0 >= gap } ?? true,
                "a push to \(token) within the gap: the one before was sent "
                    + "\(now.monotonic - world.sentAt[token]!) ago")
        }
    }
}
