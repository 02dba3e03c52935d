// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The invariants of a simulated worker.
extension SimulationWorker {
    /// The hold bound, where time moves in small steps and every turn does everything.
    func checkHolds(now: Now) throws(SimulationFailure) {
        let overdue = pipeline.state.pushes.waiting(
            heldSince: now.monotonic - settings.holdMax)
        guard pipeline.hasRoomForDeferrals else { return rounds.removeAll() }
        rounds = Dictionary(uniqueKeysWithValues: overdue.map { ($0, (rounds[$0] ?? 0) + 1) })
        // A lap of the watch is half a second; one that has just landed has a lap too.
        let longest = rounds.values.max() ?? 0
        try require(longest <= 7, "a waiting push holds an offset longer than holdMax")
    }

    /// Nothing below this offset may be owed any more.
    func requireEnded(partition: Int, below offset: Int64) throws(SimulationFailure) {
        guard let debt = model.lost(partition: partition, stored: offset) else { return }
        throw SimulationFailure(
            text: "offset \(offset) of partition \(partition) is stored, but "
                + "offset \(debt.read.offset) is owed: \(debt)")
    }

    func check() throws(SimulationFailure) {
        let load = pipeline.load
        try require(
            pipeline.counters.failuresRepeated
                == repeats.written + pipeline.state.outbox.repeated.untold,
            "failures that repeat others are miscounted")
        try require(
            pipeline.pushesAddUp, "the pushes do not add up: \(pipeline.counters), \(load)")
        pipeline.checkInvariants()
        try require(
            load.queued + load.inFlight + load.resting <= settings.slots, "more pushes than slots")
        try require(load.inFlight == flights.count, "what is in flight is miscounted")
        try require(pipeline.fanOut.underWay.count <= settings.fanOutsMax + 1, "too many fan-outs")
        // When a replay has ended, what a later partition's rows had hidden is written again at once;
        // and an operator's drop is followed by a tombstone where a rewrite of the row is still unread.
        let rewritten = Int(pipeline.counters.deferredRewritten)
        let suppressions = pipeline.state.outbox.tickets.usage(of: .suppressions).count
        try require(
            suppressions <= settings.unacknowledgedMax, "too many suppressions: \(suppressions)")
        let deferrals = pipeline.state.outbox.tickets.deferrals
        // Each partition's share is rounded up.
        let partitions = pipeline.state.outbox.tickets.shares.count
        try require(
            deferrals <= settings.unacknowledgedMax + partitions + rewritten + dropsRead,
            "too many deferrals unacknowledged: \(deferrals)")
        let letterBytes = pipeline.state.outbox.letterBytes
        try require(
            letterBytes <= settings.deadLetterBytesMax + 2048,
            "too many bytes of letters: \(letterBytes)")
        try require(
            pipeline.state.pushes.deferredShareCount <= settings.sizes.deferredSlots,
            "deferred pushes take slots from events")
        // What has a gap behind it comes to owe a push without a further row; each route keeps some
        // to probe with.
        let rowsMax =
            2 * settings.deferredMax + HoldWatch.probesKept * pipeline.routing.routes.count
        try require(
            load.deferred <= rowsMax + settings.unacknowledgedMax, "too many rows: \(load.deferred)"
        )
        try require(
            load.payloadBytes <= settings.payloadBytesMax + 2 * settings.fanOutsMax * 200,
            "too many bytes of payloads")
        try require(
            pipeline.late.bytes <= settings.recentEventBytesMax + 2 * settings.fanOutsMax * 1024,
            "too many bytes of recent events: \(pipeline.late.bytes)")
    }
}
