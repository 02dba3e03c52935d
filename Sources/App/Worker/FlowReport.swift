// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Pipeline
internal import PushModel

/// What flows through the worker, in one line every few seconds, and what has since the start. Each
/// counter that is not zero stands in both under its own name.
struct FlowReport {
    private var reported = Counters()
    private var totals = Counters()
    private var totalsAt: MonotonicTime?
    /// An operator has asked for it (SIGUSR1): the next report is written though nothing flows.
    private(set) var isReportWanted = false

    private static let totalsInterval = Duration.seconds(60)

    mutating func askForReport() { isReportWanted = true }

    /// Only while something flows or waits, or where it was asked for.
    ///
    /// - Parameter unavailable: our partitions that cannot be read at the moment.
    mutating func report(
        _ counters: Counters, load: PushPipeline.Load, unavailable: Int = 0, now: Now,
        logger: Logger
    ) {
        let isWaiting =
            load.queued + load.inFlight + load.resting + load.holders + load.unacknowledged > 0
            || unavailable > 0
        if counters != reported || isWaiting || isReportWanted {
            var metadata = Self.shown(counters, since: reported)
            for (name, value) in Self.shown(load) { metadata[name] = .stringConvertible(value) }
            metadata["partitionsUnavailable"] = .stringConvertible(unavailable)
            logger.info("flow", metadata: metadata)
            reported = counters
        }
        let isAsked = isReportWanted
        isReportWanted = false
        let since = totalsAt ?? now.monotonic
        totalsAt = since
        let isDue = now.monotonic - since >= Self.totalsInterval && counters != totals
        guard isDue || isAsked else { return }
        totalsAt = now.monotonic
        reportTotals(counters, logger: logger)
    }

    /// Also the last line of a worker that stops.
    mutating func reportTotals(_ counters: Counters, logger: Logger) {
        totals = counters
        logger.info("totals since the start", metadata: Self.shown(counters, since: Counters()))
    }

    /// The two that everybody looks for, and all that have moved.
    private static func shown(_ counters: Counters, since before: Counters) -> Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        for (counter, earlier) in zip(counters.named, before.named) {
            let change = counter.value - earlier.value
            if change != 0 || counter.name == "events" || counter.name == "accepted" {
                metadata[counter.name] = .stringConvertible(change)
            }
        }
        return metadata
    }

    /// `deferred` counts those that were written; these are in this worker's memory.
    private static func shown(_ load: PushPipeline.Load) -> KeyValuePairs<String, Int> {
        [
            "queued": load.queued, "inFlight": load.inFlight, "resting": load.resting,
            "deferredInMemory": load.deferred, "held": load.holders,
            "unacknowledged": load.unacknowledged,
        ]
    }
}
