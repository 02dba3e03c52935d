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
    /// Offsets of the log before this one that the group has never read and does not read now.
    package let skipped: Int64

    package init(
        _ id: AssignmentID, topic: Int, partition: Int32, startOffset: Int64,
        reason: StartReason, skipped: Int64
    ) {
        self.id = id
        self.topic = topic
        self.partition = partition
        self.startOffset = startOffset
        self.reason = reason
        self.skipped = skipped
    }
}

/// Why reading begins where it does.
package enum StartReason: String, Hashable, Sendable {
    /// Where the group has stopped.
    case committed
    /// The group has committed nothing of the topic, or its commits have expired.
    case startFrom
    /// The oldest record: a partition that was added, one whose committed offset the log does not
    /// have, or one that is read from its beginning each time.
    case beginning
}

/// The offset of the next record to read after a crash.
package struct StoredPosition: Hashable, Sendable {
    package var assignment: AssignmentID
    package var offset: Int64

    package init(_ assignment: AssignmentID, offset: Int64) {
        self.assignment = assignment
        self.offset = offset
    }
}

/// Records that were owed and are not in the log any more.
package struct OffsetLoss: Hashable, Sendable {
    package enum Cause: Hashable, Sendable {
        /// The log starts above the committed offset: retention removed what lies between.
        case retention
        /// The log ends below the committed offset: it was cut, or the topic was made anew.
        case truncation
    }

    package let topic: Int
    package let partition: Int32
    package let cause: Cause
    /// The offset that was committed.
    package let committed: Int64
    /// Where reading begins instead.
    package let startOffset: Int64

    /// How many offsets were removed unread; zero for a truncation, where nobody can tell.
    package var offsetsMax: Int64 { cause == .retention ? startOffset - committed : 0 }
}

/// Something the library complains about and deals with itself. At most one per code and interval.
package struct KafkaWarning: Hashable, Sendable {
    /// Bounded: fit for a metric label.
    package let code: String
    package let text: String
    /// Equal warnings since the last one that was reported.
    package let suppressed: Int
}

/// What happened to a consumer apart from records, in order.
package enum ConsumerFact: Hashable, Sendable {
    /// These partitions are ours, and their records follow. May be empty, and more may follow: each
    /// begins when it is known where.
    case assigned([Assignment])
    /// The group wants these back. None of their records is delivered from here on; finish what
    /// was, then call `completeRevoke`. The whole group waits, so be quick.
    case revoking([AssignmentID])
    /// These belong to somebody else already, or their client was closed. Nothing can be stored.
    case lost([AssignmentID])
    /// The end of this partition was reached for the first time in this assignment.
    case endOfPartition(AssignmentID)
    case offsetsLost(OffsetLoss)
    /// All that cannot be read at the moment: when that has lasted for a while, and again as long
    /// as it does. The others are read.
    case unavailable([UnavailablePartition])
    /// One that `unavailable` told of is read again.
    case availableAgain(topic: Int, partition: Int32)
    case warning(KafkaWarning)
    /// Some partition gets no records any more, or could not be started: call `restart`.
    case restartNeeded(RdkafkaError)
    /// The client does nothing any more. After FENCED_INSTANCE_ID the next one may: call `restart`.
    case fatal(RdkafkaError)
}
