// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// The facts by which the end of a drain is judged.
package struct DrainFacts: Sendable {
    package var load: PipelineLoad
    package var counters: Counters
    /// The state of each partition that `WorkerLifecycle.draining` names.
    package var states: [AssignmentID: DrainState]
    /// Whether every delivery thread has ended and all its outcomes have been read.
    package var hasDeliveryEnded: Bool

    package init(
        load: PipelineLoad, counters: Counters, states: [AssignmentID: DrainState],
        hasDeliveryEnded: Bool
    ) {
        self.load = load
        self.counters = counters
        self.states = states
        self.hasDeliveryEnded = hasDeliveryEnded
    }

    func state(of id: AssignmentID) -> DrainState {
        guard let state = states[id] else {
            preconditionFailure("a partition that is asked about is among those wanted back: \(id)")
        }
        return state
    }
}

/// How far a partition is from being given up without loss of work. The next owner sees to the tokens
/// that register within the grace period of its events, and has the rows of `deferred`.
package enum DrainState: Sendable {
    /// Some of its events have not ended; or, of `deferred`, it announces a push of which Kafka does
    /// not know whether it was sent: the next owner would keep a distance to it.
    case open
    /// Nothing is left to be done.
    case drained
}

/// Partitions that the group wants back. The whole group waits for them, so they are given back as
/// soon as what was read of them has ended, or does not end any more, or the deadline is reached.
struct RevokeDrain: Sendable {
    private(set) var partitions: [AssignmentID]
    let deadline: MonotonicTime
    private var watch = DrainWatch()

    init(_ partitions: [AssignmentID], deadline: MonotonicTime) {
        precondition(!partitions.isEmpty, "the group wants back at least one partition")
        assert(Set(partitions).count == partitions.count, "each partition is wanted back once")
        self.partitions = partitions
        self.deadline = deadline
    }

    /// These partitions already belong to another member.
    /// - Returns: whether nothing is left to be given back.
    mutating func lost(_ ids: [AssignmentID]) -> Bool {
        partitions.removeAll(where: ids.contains)
        return partitions.isEmpty
    }

    mutating func isOver(_ facts: DrainFacts, now: Now) -> Bool {
        assert(!partitions.isEmpty, "a drain goes on only while it has partitions")
        let isUseless = watch.isOver(facts.load, facts.counters, now: now)
        if deadline <= now.monotonic { return true }
        return partitions.allSatisfy { id in
            switch facts.state(of: id) {
            case .open: isUseless
            case .drained: true
            }
        }
    }
}
