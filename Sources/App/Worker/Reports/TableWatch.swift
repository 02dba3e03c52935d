// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging

/// Logs once when the copy of a table's partition is out of date, and once when it is up to date
/// again: otherwise a table that is no longer read would look like one without new records.
struct TableWatch {
    private var stale: Set<TablePartition> = []

    /// The most partitions named in one line.
    private static let namedMax = 10

    mutating func report(_ lags: [TableLag], topics: [String], logger: Logger) {
        let new = lags.filter { !stale.contains($0.partition) }
        if !new.isEmpty { tell(of: new, topics: topics, logger: logger) }
        let now = Set(lags.map(\.partition))
        let cured = stale.subtracting(now).sorted { ($0.topic, $0.number) < ($1.topic, $1.number) }
        if !cured.isEmpty {
            logger.notice(
                "registrations, suppressions and restrictions are up to date again",
                metadata: ["partitions": "\(Self.names(cured, topics: topics))"])
        }
        assert(now.count == lags.count, "a partition is at most once among those that lag")
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
            registrations, suppressions or restrictions are out of date: check the leaders of \
            these partitions and the right to read their topic
            """,
            metadata: metadata)
    }

    private static func names(_ partitions: [TablePartition], topics: [String]) -> String {
        let named = partitions.prefix(namedMax).map { "\(topics[$0.topic])/\($0.number)" }
        let others = partitions.count - named.count
        return named.joined(separator: ", ") + (others > 0 ? " and \(others) more" : "")
    }
}
