// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Admits one warning per code (and topic, if it is about one) in an interval and counts the rest:
/// an outage repeats the same warning for every broker, commit and reconnection. Bounded by the
/// number of librdkafka's codes and of topics.
struct WarningLimiter {
    private struct Kind: Hashable {
        var code: ErrorCode
        var topic: Int?
    }

    private var rows: [Kind: (reportedAt: MonotonicTime, suppressed: Int)] = [:]
    private static let interval = Duration.seconds(10)

    mutating func admit(
        _ error: RdkafkaError, of topic: Int? = nil, now: MonotonicTime
    ) -> KafkaWarning? {
        let kind = Kind(code: error.code, topic: topic)
        let row = rows[kind]
        if let row, now - row.reportedAt < Self.interval {
            rows[kind] = (row.reportedAt, row.suppressed + 1)
            return nil
        }
        assert(row.map { $0.reportedAt <= now } ?? true, "warnings are told in the order of time")
        rows[kind] = (now, 0)
        return KafkaWarning(
            code: error.code.name, text: error.message, suppressed: row?.suppressed ?? 0)
    }
}
