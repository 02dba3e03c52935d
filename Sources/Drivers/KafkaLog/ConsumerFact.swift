// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Rdkafka

/// A partition that the group has given to this process.
package struct Assignment: Hashable, Sendable {
    package let id: AssignmentID
    /// The position of the topic in the list of subscribed topics.
    package let topic: Int
    package let partition: Int32
    /// The offset of the first record that can be delivered.
    package let startOffset: Int64
    package let reason: StartReason
    /// How many offsets before the start are in the log and were never read by the group. They are
    /// skipped.
    package let skipped: Int64
    /// The metadata of the committed offset, where that is the start offset.
    package let metadata: String?
    /// The offset after the newest record, when the start offset was decided.
    package let logEnd: Int64

    package init(
        _ id: AssignmentID, topic: Int, partition: Int32, startOffset: Int64,
        reason: StartReason, skipped: Int64, metadata: String? = nil, logEnd: Int64 = .max
    ) {
        self.id = id
        self.topic = topic
        self.partition = partition
        self.startOffset = startOffset
        self.reason = reason
        self.skipped = skipped
        self.metadata = metadata
        self.logEnd = logEnd
    }
}

/// Why reading of a partition starts where it does.
package enum StartReason: String, Hashable, Sendable {
    /// The group's committed offset.
    case committed
    /// The position that `kafka.startFrom` gives, because the group has committed nothing in the
    /// topic or its commits have expired.
    case startFrom
    /// The oldest record, because the partition was added to its topic, the log does not have the
    /// committed offset, or the topic is read from its beginning in every assignment.
    case beginning
}

/// The offset from which the next owner of the partition reads.
package struct CommitPosition: Hashable, Sendable {
    package var assignment: AssignmentID
    package var offset: Int64
    /// What the next owner gets with its `Assignment`, when the partition is given up.
    package var metadata: String?

    package init(_ assignment: AssignmentID, offset: Int64, metadata: String? = nil) {
        self.assignment = assignment
        self.offset = offset
        self.metadata = metadata
    }
}

/// Records that the group has not read and that are no longer in the log.
package struct OffsetLoss: Hashable, Sendable {
    package enum Cause: Hashable, Sendable {
        /// The log starts above the committed offset: retention removed the records between.
        case retention
        /// The log ends below the committed offset: it was truncated, or the topic was recreated.
        case truncation
    }

    package let topic: Int
    package let partition: Int32
    package let cause: Cause
    /// The offset that the group had committed.
    package let committed: Int64
    /// The offset at which reading starts instead.
    package let startOffset: Int64

    /// How many offsets were removed unread; zero for a truncation, where the number is unknown.
    package var offsetsMax: Int64 { cause == .retention ? startOffset - committed : 0 }
}

/// Partitions that are given up while the group's coordinator refuses to commit how far they were read.
/// Their next owner may begin at an older commit.
package struct RefusedCommit: Hashable, Sendable {
    package struct Place: Hashable, Sendable {
        /// The position of the topic in the list of subscribed topics.
        package let topic: Int
        package let partition: Int32
    }

    package let partitions: [Place]
    /// Why the first of them was refused, the last time.
    package let cause: RdkafkaError
}

/// A problem that librdkafka reports and handles itself. At most one is reported per code,
/// topic and interval.
package struct KafkaWarning: Hashable, Sendable {
    /// The name of librdkafka's error code. There is a bounded number of them, so it can be a
    /// metric label.
    package let code: String
    package let text: String
    /// How many equal warnings were left out since the last one reported.
    package let suppressed: Int
}

/// What happened to a consumer, apart from its records.
package enum ConsumerFact: Hashable, Sendable {
    /// These partitions now belong to this consumer, and their records follow. The list may be
    /// empty, and more partitions may follow: each starts once its start offset is known.
    case assigned([Assignment])
    /// The group takes these back. No more of their records are delivered. The caller must finish
    /// those that were, then call `completeRevoke`. The whole group waits meanwhile.
    case revoking([AssignmentID])
    /// These partitions already belong to another member, or their client was closed. No offset of
    /// them can be stored.
    case lost([AssignmentID])
    /// The end of this partition was reached for the first time in this assignment.
    case endOfPartition(AssignmentID)
    case offsetsLost(OffsetLoss)
    /// All assigned partitions that cannot be read at the moment; the others are read. Reported
    /// after the first has been unavailable for a few seconds, and then every minute.
    case unavailable([UnavailablePartition])
    /// A partition that was reported as `unavailable` is read again.
    case availableAgain(topic: Int, partition: Int32)
    case notCommitted(RefusedCommit)
    case warning(KafkaWarning)
    /// A partition no longer gets records, or could not be started. The caller must call `restart`.
    case restartNeeded(RdkafkaError)
    /// The client has failed for good. After FENCED_INSTANCE_ID a new client may succeed: call
    /// `restart`.
    case fatal(RdkafkaError)
}
