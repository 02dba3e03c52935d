// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging

/// Logs where reading starts in newly assigned partitions, and how many records are skipped.
enum AssignmentReport {
    /// The most partitions named in the line. If there are more, each also has a line of its own at
    /// level `debug`.
    private static let namedMax = 20

    /// - Parameter startFrom: `kafka.startFrom`, or its default.
    static func tell(
        _ assignments: [Assignment], topics: [String], startFrom: StartFrom, logger: Logger
    ) {
        let starts = assignments.map { text($0, topics: topics) }
        var metadata: Logger.Metadata = ["partitions": .stringConvertible(starts.count)]
        if !starts.isEmpty {
            metadata["starts"] = "\(starts.prefix(namedMax).joined(separator: ", "))"
        }
        if starts.count > namedMax {
            metadata["startsNotNamed"] = .stringConvertible(starts.count - namedMax)
            for start in starts { logger.debug("reading starts", metadata: ["at": "\(start)"]) }
        }
        let skipped = assignments.reduce(0) { $0 + $1.skipped }
        if skipped > 0 {
            metadata["recordsSkipped"] = .stringConvertible(skipped)
            metadata["kafka.startFrom"] = "\(text(startFrom))"
        }
        logger.log(level: skipped > 0 ? .notice : .info, "assigned", metadata: metadata)
    }

    private static func text(_ assignment: Assignment, topics: [String]) -> String {
        let reason: String
        switch assignment.reason {
        case .committed: reason = "committed"
        case .beginning: reason = "beginning"
        case .startFrom: reason = "startFrom, \(assignment.skipped) skipped"
        }
        let partition = "\(topics[assignment.topic])/\(assignment.partition)"
        return "\(partition) at \(assignment.startOffset) (\(reason))"
    }

    private static func text(_ startFrom: StartFrom) -> String {
        switch startFrom {
        case .earliest: "earliest"
        case .latest: "latest"
        case .ago(let duration): "\(duration.components.seconds)s"
        }
    }
}
