// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Pipeline
internal import PushModel

/// Logs every few seconds what flows through the worker, and once a minute the totals since the
/// start. A figure is in a line if it is not zero. A worker in which nothing changes writes a line a
/// minute, and one in which pushes wait and none ends writes ever less often, down to that.
struct FlowReport {
    /// What the report is made of at one moment.
    struct Figures {
        var counters = Counters()
        var load: PushPipeline.Load
        /// The times from event to acceptance since the start, of all push types.
        var eventToAccepted = LatencyHistogram()
        /// How many records of events are not committed yet; nil while none can be read.
        var lag: Int64?
        /// How many assigned partitions cannot be read at the moment.
        var unavailablePartitions = 0

        /// Whether the worker has something to do that is not done yet.
        fileprivate var isWaiting: Bool {
            let held = load.queued + load.inFlight + load.resting + load.claims
            return held + load.unacknowledged + unavailablePartitions > 0
        }
    }

    /// The state that the next line tells the changes since.
    private var told = Counters()
    private var toldTimes = LatencyHistogram()
    private var toldAt: MonotonicTime?
    /// When the last line was written, or the first was due.
    private var wroteAt: MonotonicTime?
    /// How long a line about the same standstill is not repeated.
    private var pause = Duration.zero

    private var totals = Counters()
    private var totalsAt: MonotonicTime?
    /// Whether an operator has asked for a report (SIGUSR1), which is then written even if nothing
    /// flows.
    private(set) var isReportWanted = false

    private static let totalsInterval = Duration.seconds(60)
    private static let pauseMin = Duration.seconds(5)
    private static let pauseMax = Duration.seconds(60)

    mutating func askForReport() { isReportWanted = true }

    /// Writes the lines that are due.
    mutating func report(_ figures: Figures, now: Now, logger: Logger) {
        let since = toldAt ?? now.monotonic
        if toldAt == nil { (toldAt, wroteAt) = (now.monotonic, now.monotonic) }
        let isMoving = figures.counters.progress != told.progress
        let isNews = figures.counters != told || figures.isWaiting
        if isMoving { pause = .zero }
        if isReportWanted || isMoving || (isNews && now.monotonic - since >= pause) {
            let after = now.monotonic - since
            logger.info(
                isMoving ? "delivering" : figures.isWaiting ? "waiting" : "no events",
                metadata: metadata(of: figures, after: after))
            (told, toldTimes, toldAt) = (figures.counters, figures.eventToAccepted, now.monotonic)
            wroteAt = now.monotonic
            pause = isMoving ? .zero : min(max(Self.pauseMin, pause * 2), Self.pauseMax)
        } else if !isNews {
            if now.monotonic - (wroteAt ?? now.monotonic) >= Self.pauseMax {
                logger.info("no events", metadata: metadata(of: figures, after: .zero))
                wroteAt = now.monotonic
            }
            // The rates of the next line are of the time in which something moved.
            (toldAt, pause) = (now.monotonic, .zero)
        }
        let isAsked = isReportWanted
        isReportWanted = false
        reportTotals(figures.counters, isAsked: isAsked, now: now, logger: logger)
    }

    // MARK: Totals

    private mutating func reportTotals(
        _ counters: Counters, isAsked: Bool, now: Now, logger: Logger
    ) {
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
        var metadata: Logger.Metadata = [
            "events": .stringConvertible(counters.events),
            "accepted": .stringConvertible(counters.accepted),
        ]
        for counter in counters.named where counter.value != 0 {
            metadata[counter.name] = .stringConvertible(counter.value)
        }
        logger.info("totals since the start", metadata: metadata)
    }

    // MARK: What a line says

    private func metadata(of figures: Figures, after: Duration) -> Logger.Metadata {
        let counters = figures.counters
        let accepted = counters.accepted - told.accepted
        var metadata: Logger.Metadata = [
            "events": .stringConvertible(counters.events - told.events),
            "accepted": .stringConvertible(accepted),
        ]
        if let lag = figures.lag { metadata["lag"] = .stringConvertible(lag) }
        for (counter, before) in zip(counters.named, told.named)
        where counter.value != before.value && !Self.inTotalsAlone.contains(counter.name) {
            let name = Self.names[counter.name] ?? counter.name
            metadata[name] = .stringConvertible(counter.value - before.value)
        }
        if after >= .seconds(1) {
            metadata["acceptedPerSecond"] = .stringConvertible(
                Self.rounded(Double(accepted) / (after / .seconds(1))))
        }
        let times = figures.eventToAccepted.since(toldTimes)
        for (name, share) in [("eventToAcceptedP50Ms", 0.5), ("eventToAcceptedP99Ms", 0.99)] {
            guard let time = times.quantile(share) else { continue }
            metadata[name] = .stringConvertible(Self.rounded(time / .milliseconds(1)))
        }
        if let oldest = figures.load.oldestWaiting {
            metadata["oldestWaitingSeconds"] = .stringConvertible(
                Self.rounded(oldest / .seconds(1)))
        }
        for (name, value) in Self.held(figures) where value != 0 {
            metadata[name] = .stringConvertible(value)
        }
        return metadata
    }

    /// What the worker holds at the moment.
    private static func held(_ figures: Figures) -> KeyValuePairs<String, Int> {
        let load = figures.load
        return [
            "waiting": load.queued + load.resting, "inFlight": load.inFlight,
            "deferred": load.deferred, "uncommittedEvents": load.claims,
            "recordsUnacknowledged": load.unacknowledged,
            "partitionsUnavailable": figures.unavailablePartitions,
        ]
    }

    /// Counters of the pipeline's own steps, which tell an operator nothing while it works.
    private static let inTotalsAlone: Set<String> = [
        "pushesQueued", "pushesUnqueued", "handedOver", "deferredRead", "deferredSent",
        "deferredEnded", "deferredRewritten", "payloadsForgotten",
    ]
    /// The names in the periodic line of those counters that have another one in the totals: there
    /// `deferred` is what waits at the moment.
    private static let names = [
        "deferred": "newlyDeferred", "deadLettersWritten": "deadLetters",
        "pushesCoalesced": "coalesced", "pushesFollowedUp": "followedUp",
    ]

    /// The number with one decimal.
    private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }
}

extension Counters {
    /// A number that grows with each event that is read and each push that ends, and not with tries.
    fileprivate var progress: Int {
        events + eventsSkipped + accepted + expired + suppressed + unregistered + deadUnconfirmed
            + rejected + dropped + unsubscribed + deferred + deferredSuperseded
    }
}
