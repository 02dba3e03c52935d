// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel

/// Writes to the log that deferred pushes are left in Kafka for want of room, and that this is over.
extension ConsumerWatch {
    /// The least time between two warnings: a table that is nearly full may forget and read often.
    private static let forgottenInterval = Duration.seconds(60)

    /// Reports once that records of `deferred` are left in Kafka, and once that all have been read
    /// again. What begins within a minute of the last warning is reported when the minute is over, if
    /// it lasts so long.
    ///
    /// - Parameter forgotten: about how many records are left.
    mutating func report(forgotten: Int, now: Now, logger: Logger) {
        guard (forgotten > 0) != isForgettingReported else { return }
        guard forgotten > 0 else {
            isForgettingReported = false
            logger.notice("all deferred pushes that were left in Kafka have been read again")
            return
        }
        if let last = forgettingReportedAt, now.monotonic - last < Self.forgottenInterval { return }
        (isForgettingReported, forgettingReportedAt) = (true, now.monotonic)
        logger.warning(
            """
            no room for more deferred pushes (delivery.deferredMax, delivery.queuedBytesMax): \
            some are left in Kafka, first those that may not be sent, and read again later
            """,
            metadata: ["left": .stringConvertible(forgotten)])
    }
}
