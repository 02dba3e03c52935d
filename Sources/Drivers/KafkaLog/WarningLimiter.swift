// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Lets one warning per code through in an interval and counts the rest: an outage repeats the same
/// one for every broker, commit and reconnection. Bounded by the number of the library's codes.
struct WarningLimiter {
    private var rows: [ErrorCode: (reportedAt: MonotonicTime, suppressed: Int)] = [:]
    private static let interval = Duration.seconds(10)

    mutating func admit(_ error: RdkafkaError, now: MonotonicTime) -> KafkaWarning? {
        let row = rows[error.code]
        if let row, now - row.reportedAt < Self.interval {
            rows[error.code] = (row.reportedAt, row.suppressed + 1)
            return nil
        }
        rows[error.code] = (now, 0)
        return KafkaWarning(
            code: error.code.name, text: error.message, suppressed: row?.suppressed ?? 0)
    }
}
