// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Pipeline
internal import PushModel

/// Logs what flows through the worker every few seconds, and the totals since the start. A counter
/// is named in a line if its value there is not zero.
struct FlowReport {
    private var reported = Counters()
    private var totals = Counters()
    private var totalsAt: MonotonicTime?
    /// Whether an operator has asked for a report (SIGUSR1), which is then written even if nothing
    /// flows.
    private(set) var isReportWanted = false

    private static let totalsInterval = Duration.seconds(60)

    mutating func askForReport() { isReportWanted = true }

    /// Writes the `flow` line if something flows or waits, or if a report was asked for. Writes the
    /// totals once a minute if they have changed, or if asked for.
    ///
    /// - Parameter unavailable: how many assigned partitions cannot be read at the moment.
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

    /// Writes the totals since the start. This is also the last report of a worker that stops.
    mutating func reportTotals(_ counters: Counters, logger: Logger) {
        totals = counters
        logger.info("totals since the start", metadata: Self.shown(counters, since: Counters()))
    }

    /// The counters that have changed, and always `events` and `accepted`.
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

    /// What the pipeline holds. `deferredInMemory` differs from the counter `deferred`, which
    /// counts the deferred pushes that were written.
    private static func shown(_ load: PushPipeline.Load) -> KeyValuePairs<String, Int> {
        [
            "queued": load.queued, "inFlight": load.inFlight, "resting": load.resting,
            "deferredInMemory": load.deferred, "held": load.holders,
            "unacknowledged": load.unacknowledged,
        ]
    }
}
