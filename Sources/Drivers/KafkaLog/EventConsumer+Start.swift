// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Starts reading the partitions that the group has assigned, each as soon as its start offset is
/// known.
extension EventConsumer {
    /// Tries once to find the start offsets of a new assignment, if an attempt is due.
    func advanceAssignment(_ now: Now) {
        guard case .assigning(var resolver) = pending, let session else { return }
        switch resolver.attempt(with: session.client, now: now) {
        case .again:
            pending = .assigning(resolver)
        case .started(let starts):
            pending = nil
            keepUnstarted(resolver, now: now)
            start(starts, now: now)
        case .failed(let error):
            pending = nil
            // Starting at another offset could skip or repeat records, so nothing is read until the
            // restart.
            answerWithoutPartitions(resolver.list, now: now)
            askForRestart(error)
        }
    }

    /// Tries again to find the start offsets of the partitions not started yet, if an attempt is
    /// due.
    func startMore(_ now: Now) {
        guard pending == nil, rebalances.isEmpty, var resolver = unstarted, let session else {
            return
        }
        let outcome = resolver.attempt(with: session.client, now: now)
        keepUnstarted(resolver, now: now)
        if case .started(let starts) = outcome { start(starts, now: now) }
    }

    private func keepUnstarted(_ resolver: StartResolver, now: Now) {
        unstarted = resolver.list.isEmpty ? nil : resolver
        for (key, cause) in resolver.faults {
            guard let topic = topics.firstIndex(of: key.topic) else { continue }
            unavailable.note(topic, key.partition, cause, now: now.monotonic)
        }
    }

    /// Forgets partitions that wait to be started, because they are no longer assigned.
    ///
    /// - Parameter taken: the partitions to forget; nil for all of them.
    func forgetUnstarted(_ taken: TopicPartitionList? = nil) {
        guard let taken else {
            unstarted = nil
            return unavailable.removeAll()
        }
        unstarted?.remove(taken)
        if unstarted?.list.isEmpty == true { unstarted = nil }
        for index in 0..<taken.count {
            guard let topic = topics.firstIndex(of: taken[index].topic) else { continue }
            unavailable.forget(topic, taken[index].partition)
        }
    }

    /// Starts reading these partitions, in addition to those that are being read.
    private func start(_ starts: [StartResolver.Start], now: Now) {
        guard let client = session?.client else { return }
        precondition(
            pending == nil, "partitions are started only when no rebalance waits for its answer")
        let list = TopicPartitionList(capacity: starts.count)
        for start in starts {
            list.append(
                topic: topics[start.topic], partition: start.partition,
                offset: start.decision.offset)
        }
        // After a rebalance that answered another one, librdkafka and this table may disagree.
        guard starts.allSatisfy({ !isAssigned($0) }) else {
            answerWithoutPartitions(list, now: now)
            return askForRestart(
                RdkafkaError(.failed, message: "a partition is assigned that already was"))
        }
        do throws(RdkafkaError) {
            if client.isCooperative {
                try client.incrementalAssign(list)
            } else {
                // A member under the eager protocol can only replace its whole assignment.
                let running = partitions.assigned()
                appendPositions(of: running, to: list)
                try client.assign(list)
                forgetStored(running)
            }
        } catch {
            answerWithoutPartitions(list, now: now)
            return askForRestart(error)
        }
        for start in starts {
            missing.remove(start.topic)
            isReadAgain(start.topic, start.partition)
        }
        let assignments = starts.map { start in
            Assignment(
                partitions.assign(
                    topic: start.topic, partition: start.partition,
                    startOffset: start.decision.offset, now: now.monotonic),
                topic: start.topic, partition: start.partition,
                startOffset: start.decision.offset, reason: start.decision.reason,
                skipped: start.decision.skipped, metadata: start.metadata,
                logEnd: start.logEnd)
        }
        append(.assigned(assignments))
        for start in starts {
            guard let cause = start.decision.loss, let committed = start.committed else { continue }
            append(
                .offsetsLost(
                    OffsetLoss(
                        topic: start.topic, partition: start.partition, cause: cause,
                        committed: committed, startOffset: start.decision.offset)))
        }
    }

    private func isAssigned(_ start: StartResolver.Start) -> Bool {
        partitions.assignment(topic: start.topic, partition: start.partition) != nil
    }

    /// Adds partitions that are being read, at the offset after the last record delivered.
    private func appendPositions(of ids: [AssignmentID], to list: TopicPartitionList) {
        for id in ids {
            guard let row = partitions.row(id) else { continue }
            list.append(
                topic: topics[row.topic], partition: row.partition, offset: row.received + 1)
        }
    }

    /// Lets offsets of these partitions be stored again: when a partition is assigned again,
    /// librdkafka commits its stored offset and forgets it.
    private func forgetStored(_ ids: [AssignmentID]) {
        for id in ids { partitions.update(id) { $0.stored = $0.startOffset } }
    }

    // MARK: Partitions that cannot be read

    /// How many assigned partitions cannot be read at the moment.
    package var unavailableCount: Int { unavailable.count }

    func tellOfUnavailable(_ now: Now) {
        let due = unavailable.takeDue(now: now.monotonic)
        guard !due.isEmpty else { return }
        append(.unavailable(due))
        assignRefused()
    }

    /// Assigns the refused partitions again. If nothing is written to a partition, only its
    /// end-of-partition event shows that it can be read again, and librdkafka raises that once per
    /// assignment. A pause outlives the new assignment.
    private func assignRefused() {
        guard pending == nil, rebalances.isEmpty, let client = session?.client else { return }
        let refused = partitions.assigned { $0.isRefused }
        guard !refused.isEmpty else { return }
        let ids = client.isCooperative ? refused : partitions.assigned()
        let list = TopicPartitionList(capacity: ids.count)
        appendPositions(of: ids, to: list)
        do throws(RdkafkaError) {
            if client.isCooperative {
                try client.incrementalUnassign(list)
                try client.incrementalAssign(list)
            } else {
                try client.assign(list)
            }
        } catch {
            return askForRestart(error)
        }
        forgetStored(ids)
    }

    func isReadAgain(_ topic: Int, _ partition: Int32) {
        if let id = partitions.assignment(topic: topic, partition: partition) {
            partitions.update(id) { $0.isRefused = false }
        }
        if unavailable.forget(topic, partition) {
            append(.availableAgain(topic: topic, partition: partition))
        }
    }
}
