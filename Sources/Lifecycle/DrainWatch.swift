// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// Says when waiting longer is of no use before partitions are given up or the worker stops:
/// everything that can end has ended, or nothing ends any more. What is left is read again by the
/// next owner, who should not have to wait for it.
struct DrainWatch: Sendable {
    private var seen: Figures?
    private var movedAt = MonotonicTime(nanoseconds: .min)

    /// Longer than nearly all of APNs's and Kafka's answers take. A push that is answered later is
    /// sent twice.
    static let patience = Duration.seconds(3)

    /// Figures of which one changes whenever something ends or makes progress.
    private struct Figures: Equatable, Sendable {
        var load: PipelineLoad
        var handedOver: Int
        var visited: Int
    }

    /// - Returns: whether waiting longer is of no use.
    mutating func isOver(_ load: PipelineLoad, _ counters: Counters, now: Now) -> Bool {
        if Self.isEmpty(load) { return true }
        let figures = Figures(
            load: load, handedOver: counters.handedOver,
            visited: counters.pushesQueued + counters.pushesCoalesced)
        assert(
            seen.map { $0.handedOver <= figures.handedOver && $0.visited <= figures.visited }
                ?? true,
            "the counters of pushes only grow")
        assert(
            seen == nil || movedAt <= now.monotonic,
            "a drain is judged at times that never go back")
        if figures != seen {
            seen = figures
            movedAt = now.monotonic
        }
        return now.monotonic - movedAt >= Self.patience
    }

    /// Whether nothing is under way except records that Kafka refuses: nobody knows when it will
    /// accept them.
    private static func isEmpty(_ load: PipelineLoad) -> Bool {
        load.queued == 0 && load.inFlight == 0 && load.resting == 0 && load.fanOuts == 0
            && load.unacknowledged <= load.refused
    }
}
