// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel

/// Writes to the log that `deferred` is not read for want of room, and that this is over.
extension ConsumerWatch {
    /// The least time between two warnings: a table that is nearly full may be paused often.
    private static let deferredPauseInterval = Duration.seconds(60)

    /// Reports once that the partitions of `deferred` are not read, and once that they are read
    /// again. A pause that begins within a minute of the last warning is reported when the minute
    /// is over, if it lasts so long.
    ///
    /// - Parameter deferred: how many deferred pushes the worker has.
    mutating func report(
        isDeferredPaused: Bool, deferred: @autoclosure () -> Int, now: Now, logger: Logger
    ) {
        guard isDeferredPaused != isDeferredPauseReported else { return }
        guard isDeferredPaused else {
            isDeferredPauseReported = false
            logger.notice("deferred pushes no longer wait in Kafka for room")
            return
        }
        if let last = deferredPauseReportedAt,
            now.monotonic - last < Self.deferredPauseInterval
        {
            return
        }
        (isDeferredPauseReported, deferredPauseReportedAt) = (true, now.monotonic)
        logger.warning(
            """
            no room for more deferred pushes (delivery.deferredMax, delivery.queuedBytesMax): \
            further ones wait in Kafka
            """,
            metadata: ["deferred": .stringConvertible(deferred())])
    }
}
