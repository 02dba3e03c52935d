// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging

/// Tells of each partition of a table once when what is read of it grows old, and once when it is
/// read to its end again: an index that follows no longer looks like one that has nothing to follow.
struct TableWatch {
    private var stale: Set<TablePartition> = []

    /// So many are named in one line.
    private static let namedMax = 10

    mutating func report(_ lags: [TableLag], topics: [String], logger: Logger) {
        let new = lags.filter { !stale.contains($0.partition) }
        if !new.isEmpty { tell(of: new, topics: topics, logger: logger) }
        let now = Set(lags.map(\.partition))
        let cured = stale.subtracting(now).sorted { ($0.topic, $0.number) < ($1.topic, $1.number) }
        if !cured.isEmpty {
            logger.notice(
                "registrations or suppressions are read to their end again",
                metadata: ["partitions": "\(Self.names(cured, topics: topics))"])
        }
        assert(now.count == lags.count, "a partition lags twice")
        stale = now
    }

    private func tell(of lags: [TableLag], topics: [String], logger: Logger) {
        let worst = lags.map(\.age).max() ?? .zero
        var metadata: Logger.Metadata = [
            "partitions": "\(Self.names(lags.map(\.partition), topics: topics))",
            "behindSeconds": .stringConvertible(worst.components.seconds),
        ]
        let unread = lags.compactMap(\.unread)
        if !unread.isEmpty { metadata["unread"] = .stringConvertible(unread.reduce(0, +)) }
        if let cause = lags.compactMap(\.cause).first { metadata["cause"] = "\(cause)" }
        logger.warning(
            """
            registrations or suppressions are not read to their end, and the index grows old: look at \
            the leaders of these partitions and at the right to read their topic
            """,
            metadata: metadata)
    }

    private static func names(_ partitions: [TablePartition], topics: [String]) -> String {
        let named = partitions.prefix(namedMax).map { "\(topics[$0.topic])/\($0.number)" }
        let others = partitions.count - named.count
        return named.joined(separator: ", ") + (others > 0 ? " and \(others) more" : "")
    }
}
