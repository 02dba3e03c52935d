// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What the worker is to do, in the order in which it is told.
package enum LifecycleAction: Hashable, Sendable {
    /// Join the group and read events: the index is complete.
    case openConsumer
    /// Pause these partitions of the consumer, as far as they are not paused.
    case pause(PausedTopics)
    /// Resume those of these partitions that were paused.
    case resume(PausedTopics)
    /// Let the pipeline send what it has read of this partition of `deferred`.
    case markReplayed(AssignmentID)
    /// Store the committable offsets of these partitions, and answer the group that everything it
    /// wants back is given back.
    case completeRevoke(committing: [AssignmentID])
    /// Tell the pipeline that these partitions are not ours any more.
    case unassign([AssignmentID])
    /// Store the committable offsets of these partitions, close the consumer and open another one.
    case restartConsumer(committing: [AssignmentID])
    /// Tell the operator that the worker stops.
    case announceStop
    /// Have delivery end what is in flight, and leave.
    case drainDelivery
    /// Have delivery give back what it has, and leave.
    case stopDelivery
}

/// Which partitions a pause or a resume is about.
package enum PausedTopics: Hashable, Sendable {
    case events
    case all
}

/// Why a worker has ended.
package enum WorkerEnd: Sendable, Equatable {
    case stopped
    /// A Kafka client does nothing any more; a new process may do better.
    case clientFailed(String)
    /// Another worker has this one's static name. A new process would take it back, the other one
    /// would too, and so on for ever.
    case nameTaken(String)
}

/// What is done, in this order, when a worker has ended for whatever reason: whatever Kafka has
/// acknowledged by then releases its offsets before they are committed for the last time.
package enum ClosingStep: CaseIterable, Sendable {
    case stopDelivery
    /// Wait for the records that are on their way to Kafka, for a bounded time.
    case flushRecords
    case takeAcknowledgements
    /// Store the committable offset of each partition, and leave the group.
    case leaveGroup
    /// Wait a moment for the last records of the topic of outcomes.
    case flushOutcomes
    /// Write the index for the next start. Others have the partitions by now, so nobody waits for it.
    case keepIndex
}
