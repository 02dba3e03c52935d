// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel

/// Logs, once a minute for each topic, how many more events reached nobody, and one of their
/// subjects: those that nobody shows, or those shown by no token that the event is for. A wrong
/// subject or class is otherwise a push that nobody misses.
struct UnmatchedReport {
    private var unmatched = MinuteReports()
    private var passedOver = MinuteReports()

    mutating func report(
        _ topics: [WorkerStatus.UnmatchedSubjects],
        passedOver passed: [WorkerStatus.UnmatchedSubjects], now: Now, logger: Logger
    ) {
        for metadata in Self.growth(of: topics, &unmatched, now: now) {
            logger.notice("events named subjects that nobody shows", metadata: metadata)
        }
        for metadata in Self.growth(of: passed, &passedOver, now: now) {
            logger.notice(
                """
                events named subjects that are shown by no token of their classes, kinds, environment \
                or push type
                """, metadata: metadata)
        }
    }

    /// What there is to tell of the topics now.
    private static func growth(
        of topics: [WorkerStatus.UnmatchedSubjects], _ minutes: inout MinuteReports, now: Now
    ) -> [Logger.Metadata] {
        topics.compactMap { topic in
            minutes.growth(of: topic.topic, to: topic.count, now: now).map { new in
                var metadata: Logger.Metadata = [
                    "topic": "\(topic.topic)", "events": .stringConvertible(new),
                ]
                metadata["example"] = topic.sample.last.map { "\($0.subject.remarkedSubject)" }
                return metadata
            }
        }
    }
}

/// Logs the totals of what was set aside of the compacted topics, by reason, once a minute while
/// they grow. `ConsumerWatch` names the first records of each minute.
struct SetAsideReport {
    private var minutes = MinuteReports()

    mutating func report(_ counts: [WorkerStatus.SetAsideCount], now: Now, logger: Logger) {
        let parts = Dictionary(grouping: counts) { "\($0.topic) \($0.unit)" }
        for (part, reasons) in parts.sorted(by: { $0.key < $1.key }) {
            let total = reasons.reduce(0) { $0 + $1.count }
            guard let new = minutes.growth(of: part, to: total, now: now) else { continue }
            var metadata: Logger.Metadata = [
                "topic": "\(reasons[0].topic)", "of": "\(reasons[0].unit)",
                "total": .stringConvertible(total), "new": .stringConvertible(new),
            ]
            for reason in reasons { metadata[reason.reason] = .stringConvertible(reason.count) }
            logger.notice(
                "some have been set aside since the start, by reason", metadata: metadata)
        }
    }
}

/// Warns of records in other partitions than those of their keys, once a minute for each topic while
/// they grow, with the place of one; its key may be a token.
struct MisplacedReport {
    private var minutes = MinuteReports()

    mutating func report(_ topics: [MisplacedRecords], now: Now, logger: Logger) {
        for records in topics {
            guard minutes.growth(of: records.topic, to: records.count, now: now) != nil else {
                continue
            }
            logger.warning(
                """
                records are not in the partitions of their keys, so an older one may win after a \
                restart: set partitioner=murmur2_random in their producer, unless the topic has just \
                got more partitions, and write them again
                """,
                metadata: [
                    "topic": "\(records.topic)", "records": .stringConvertible(records.count),
                    "partition": .stringConvertible(records.partition),
                    "offset": .stringConvertible(records.offset),
                    "belongsInPartition": .stringConvertible(records.belongsIn),
                ])
        }
    }
}

/// Decides when growing totals are told: at once, and then at most once a minute each.
private struct MinuteReports {
    private var told: [String: (total: Int, at: MonotonicTime)] = [:]
    private static let interval = Duration.seconds(60)

    /// By how much the total has grown since it was last told; nil if it need not be told now.
    mutating func growth(of name: String, to total: Int, now: Now) -> Int? {
        let last = told[name]
        let new = total - (last?.total ?? 0)
        guard new > 0, last.map({ now.monotonic - $0.at >= Self.interval }) ?? true else {
            return nil
        }
        told[name] = (total, now.monotonic)
        return new
    }
}
