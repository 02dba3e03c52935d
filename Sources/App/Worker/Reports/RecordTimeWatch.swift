// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Pipeline
internal import PushModel

/// Compares the timestamps of records with this worker's clock, for one record of each batch. The
/// expiry of pushes and the suppression of device tokens depend on both.
struct RecordTimeWatch {
    /// The topic that a record comes from, by its position in its reader's list.
    enum Source: Hashable {
        case events(Int)
        case deferred
        case table(Int)
    }

    /// The record furthest ahead of this worker's clock since the last report.
    private var ahead: (source: Source, by: Duration)?
    /// The smallest age of an event record since the last report.
    private var youngest: Duration?
    /// Consecutive reports at which nothing was left to read and yet every event record was old.
    private var oldLooks = 0
    private var expired = ExpiredEvents()

    private var aheadToldAt: MonotonicTime?
    private var oldToldAt: MonotonicTime?
    private var expiredToldAt: MonotonicTime?

    /// How far a timestamp may be ahead. Synchronised hosts agree within a fraction of a second.
    private static let aheadMax = Duration.seconds(5)
    /// The age above which a record counts as old: more than a producer's retries take during an
    /// ordinary broker restart.
    private static let ageMax = Duration.seconds(30)
    /// A minute of reports, five seconds apart.
    private static let oldLooksMax = 12
    private static let clockInterval = Duration.seconds(600)
    private static let expiredInterval = Duration.seconds(60)

    /// Notes the timestamp of a record.
    ///
    /// - Parameter timestamp: in milliseconds since 1970; below zero if the record has none.
    mutating func sampled(_ timestamp: Int64, of source: Source, now: Now) {
        guard timestamp >= 0 else { return }
        let age = now.wall - WallTime(milliseconds: timestamp)
        // Only events are expected to be read soon after they were written.
        if case .events = source { youngest = min(youngest ?? age, age) }
        if age < .zero - Self.aheadMax, .zero - age > ahead?.by ?? .zero {
            ahead = (source, .zero - age)
        }
    }

    /// Logs what was found since the last report.
    ///
    /// - Parameter unread: how many records are left to read in the partitions of events.
    mutating func report(
        _ expired: ExpiredEvents, unread: Int64, now: Now, logger: Logger,
        topic: (Source) -> String
    ) {
        report(expired, unread: unread, now: now, logger: logger)
        reportAhead(now: now, logger: logger, topic: topic)
        reportOld(isCaughtUp: unread == 0, now: now, logger: logger)
    }

    private mutating func reportAhead(now: Now, logger: Logger, topic: (Source) -> String) {
        defer { ahead = nil }
        guard let ahead, Self.isDue(aheadToldAt, Self.clockInterval, now) else { return }
        assert(ahead.by > Self.aheadMax, "a record that is told of is ahead by more than aheadMax")
        aheadToldAt = now.monotonic
        logger.warning(
            """
            records have timestamps ahead of this worker's clock: compare its clock with that of \
            the topic's producers, or of the brokers if the topic has LogAppendTime
            """,
            metadata: [
                "topic": "\(topic(ahead.source))",
                "aheadSeconds": .stringConvertible(Self.seconds(ahead.by)),
            ])
    }

    /// Warns if records are old although nothing is left to read: either the clocks differ or
    /// producers write late.
    private mutating func reportOld(isCaughtUp: Bool, now: Now, logger: Logger) {
        defer { youngest = nil }
        guard let youngest else { return }
        oldLooks = isCaughtUp && youngest > Self.ageMax ? oldLooks + 1 : 0
        guard oldLooks >= Self.oldLooksMax, Self.isDue(oldToldAt, Self.clockInterval, now) else {
            return
        }
        oldToldAt = now.monotonic
        logger.warning(
            """
            events have old timestamps although they are read at once: this worker's clock is \
            ahead, or their producers write them late
            """,
            metadata: ["ageSecondsMin": .stringConvertible(Self.seconds(youngest))])
    }

    private mutating func report(
        _ more: ExpiredEvents, unread: Int64, now: Now, logger: Logger
    ) {
        expired.whileWaiting += more.whileWaiting
        expired.beforeWritten += more.beforeWritten
        expired.waitMax = max(expired.waitMax, more.waitMax)
        guard expired != ExpiredEvents(), Self.isDue(expiredToldAt, Self.expiredInterval, now)
        else { return }
        expiredToldAt = now.monotonic
        if expired.whileWaiting > 0 {
            let cause: Logger.MetadataValue =
                unread == 0
                ? "nothing is left to read: they were written late, or this worker's clock is ahead"
                : "this worker lags behind"
            logger.warning(
                "events expired before they were read",
                metadata: [
                    "events": .stringConvertible(expired.whileWaiting), "cause": cause,
                    "unread": .stringConvertible(unread),
                    "waitSecondsMax": .stringConvertible(Self.seconds(expired.waitMax)),
                ])
        }
        if expired.beforeWritten > 0 {
            logger.warning(
                """
                events had expired before they were written: check expiresAt, ttlSeconds and the \
                clocks of their producers
                """,
                metadata: ["events": .stringConvertible(expired.beforeWritten)])
        }
        expired = ExpiredEvents()
    }

    private static func isDue(
        _ toldAt: MonotonicTime?, _ interval: Duration, _ now: Now
    ) -> Bool {
        toldAt.map { now.monotonic - $0 >= interval } ?? true
    }

    private static func seconds(_ duration: Duration) -> Int64 { duration.components.seconds }
}
