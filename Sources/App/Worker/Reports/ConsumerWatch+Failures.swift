// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Pipeline
internal import PushModel
internal import RecordFormats

/// Writes to the log what has failed for good: one line a minute for each reason, with the latest
/// count and what one of the events is called elsewhere. The dead letters have them all.
extension ConsumerWatch {
    func mayReportFailures(now: Now) -> Bool {
        failuresReportedAt.map { now.monotonic - $0 >= Self.failureInterval } ?? true
    }

    private static let failureInterval = Duration.seconds(60)

    /// - Parameter failures: those since the last report.
    mutating func report(failures: [FailureSample], now: Now, logger: Logger) {
        guard !failures.isEmpty else { return }
        failuresReportedAt = now.monotonic
        for failure in failures {
            let metadata = Self.metadata(failure)
            if failure.isWithheld {
                logger.warning("events are withheld", metadata: metadata)
            } else if failure.isUnreadable {
                logger.warning("events could not be read", metadata: metadata)
            } else {
                logger.warning("pushes have failed for good", metadata: metadata)
            }
        }
    }

    private static func metadata(_ failure: FailureSample) -> Logger.Metadata {
        let source = failure.source
        var metadata: Logger.Metadata = [
            "reason": "\(failure.reason)", "count": .stringConvertible(failure.count),
            "event": "\(source.topic)/\(source.partition)/\(source.offset)",
        ]
        metadata["cause"] = failure.message.map { "\($0)" }
        if let status = failure.status { metadata["status"] = .stringConvertible(status) }
        metadata["app"] = failure.app.map { "\($0)" }
        metadata["eventID"] = failure.eventID.map { "\($0)" }
        metadata["traceparent"] = failure.traceparent.map { "\($0)" }
        return metadata
    }
}
