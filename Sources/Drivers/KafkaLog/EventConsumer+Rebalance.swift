// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

extension EventConsumer {
    /// Answers the announced rebalances in order, until one needs time.
    func answerRebalances(_ now: Now) {
        while !rebalances.isEmpty {
            if pending != nil, !preempts(rebalances[0]) { return }
            answer(rebalances.removeFirst(), now: now)
        }
    }

    /// Whether this rebalance cancels the one being answered: any rebalance cancels an assignment
    /// that is still starting, and a loss or an error cancels a revocation.
    private func preempts(_ rebalance: Rebalance) -> Bool {
        if case .assigning = pending { return true }
        return rebalance.isLost || !rebalance.code.isOrderly
    }

    private func answer(_ rebalance: Rebalance, now: Now) {
        pending = nil
        let isKept = session?.client.isCooperative == true
        switch rebalance.code {
        case .assignPartitions:
            groupWait.assigned()
            // An incremental list names only the new partitions. Those that still wait to be
            // started remain assigned.
            let known = Set(topics)
            let list = rebalance.partitions.filter { known.contains($0.topic) }
            if isKept, let unstarted { list.append(contentsOf: unstarted.list) }
            forgetUnstarted()
            pending = .assigning(
                StartResolver(
                    list: list, topics: session?.topics ?? [],
                    replayed: replayed, startFrom: startFrom, now: now))
            advanceAssignment(now)
        case .revokePartitions where !rebalance.isLost:
            if !isKept { groupWait.revoked(now: now.monotonic) }
            forgetUnstarted(isKept ? rebalance.partitions : nil)
            beginRevoke(rebalance.partitions, now: now)
        default:
            groupWait.revoked(now: now.monotonic)
            if !rebalance.code.isOrderly { warn(RdkafkaError(rebalance.code), now: now) }
            forgetUnstarted(isKept && rebalance.code.isOrderly ? rebalance.partitions : nil)
            let lost = assignments(of: rebalance.partitions)
            letGo(rebalance.partitions, lost, now: now)
            if !lost.isEmpty { append(.lost(lost)) }
        }
    }

    // MARK: Revocation

    /// Reports the revocation as a fact. The group is answered in `completeRevoke`, once the caller
    /// has finished the records of these partitions.
    private func beginRevoke(_ list: TopicPartitionList, now: Now) {
        let revoked = assignments(of: list)
        guard !revoked.isEmpty else { return letGo(list, [], now: now) }
        precondition(pending == nil, "a rebalance begins only when the one before is answered")
        for id in revoked { partitions.update(id) { $0.isMuted = true } }
        pending = .revoking(list, revoked)
        append(.revoking(revoked))
    }

    /// Whether the group is waiting for `completeRevoke`.
    package var isRevoking: Bool {
        if case .revoking = pending { true } else { false }
    }

    /// Commits these positions and gives back the partitions of the last `revoking` fact. Commits
    /// nothing if the partitions were lost meanwhile. Has no effect if nothing is being revoked.
    ///
    /// - Parameter isLeaving: whether the consumer is about to be closed, so that a static member leaves
    ///   with this answer. After another it joins again, and the library does not leave a group that it
    ///   waits to join: the group would give partitions to a member that has ended.
    package func completeRevoke(
        commit positions: [CommitPosition], isLeaving: Bool = false, now: Now
    ) {
        guard case .revoking(let list, let revoked) = pending, let session else { return }
        pending = nil
        if session.client.isAssignmentLost {
            append(.lost(revoked))
        } else {
            commitOrStore(positions)
        }
        if isLeaving, leavesByItself(session.client) { try? session.client.unsubscribe() }
        letGo(list, revoked, now: now)
        answerRebalances(now)
    }

    /// Whether the consumer has to give up its topics in order to leave. A cooperative group takes
    /// partitions back one by one, and what is kept is still to be committed: there a static member
    /// stays until its session is over.
    private func leavesByItself(_ client: Client) -> Bool {
        settings.isStaticMember && !client.isCooperative
    }

    /// Resumes exactly the partitions that this consumer has paused, then unassigns them.
    /// librdkafka's pause flag outlives the assignment, and resuming a partition that is not paused
    /// reads records twice.
    private func letGo(_ list: TopicPartitionList, _ ids: [AssignmentID], now: Now) {
        resume(ids.filter { partitions.row($0)?.isPaused == true })
        for id in ids { partitions.update(id) { $0.isAssigned = false } }
        // librdkafka does not know the partitions that were never started.
        let held = Set(
            ids.map { id in
                let (topic, partition) = partitions.partition(of: id)
                return TopicPartition(topic: topics[topic], partition: partition)
            })
        answerWithoutPartitions(list.filter { held.contains(TopicPartition($0)) }, now: now)
    }

    func answerWithoutPartitions(_ list: TopicPartitionList, now: Now) {
        guard let client = session?.client else { return }
        do {
            if client.isCooperative {
                try client.incrementalUnassign(list)
            } else {
                try client.unassignAll()
            }
        } catch {
            // librdkafka refuses partitions that were never assigned to it.
            warn(error, now: now)
            do { try client.unassignAll() } catch { askForRestart(error) }
        }
    }

    private func assignments(of list: TopicPartitionList) -> [AssignmentID] {
        (0..<list.count).compactMap { index in
            let element = list[index]
            guard let topic = topics.firstIndex(of: element.topic) else { return nil }
            return partitions.assignment(topic: topic, partition: element.partition)
        }
    }

    // MARK: Closing

    /// Stores these positions, leaves the group and closes the client. Returns false if the group
    /// could not be left in time: it then notices when the session expires. Every partition still
    /// assigned is reported as `lost`.
    ///
    /// A static member leaves too, though it need not: what follows may take long, such as the start
    /// of a pod, or never come. One that has died keeps its partitions, until it is back or its
    /// session is over, and so does one of a cooperative group.
    @discardableResult
    package func close(
        committing positions: [CommitPosition] = [], timeout: Duration, now: Now
    ) -> Bool {
        end(committing: positions, isLeaving: true, now: now) { session in
            session.close(timeout: timeout, leaving: leavesByItself(session.client))
        }
    }

    private func end(
        committing positions: [CommitPosition], isLeaving: Bool, now: Now,
        _ close: (ConsumerSession) -> Bool
    ) -> Bool {
        guard let session else { return true }
        if case .revoking = pending {
            completeRevoke(commit: positions, isLeaving: isLeaving, now: now)
        } else {
            commitOrStore(positions)
        }
        if pending != nil || !rebalances.isEmpty {
            // librdkafka would wait for this answer before it closes.
            try? session.client.unassignAll()
        }
        pending = nil
        commitUnderWay = nil
        rebalances.removeAll()
        forgetUnstarted()
        let held = partitions.assigned()
        for id in held { partitions.update(id) { $0.isAssigned = false } }
        if !held.isEmpty { append(.lost(held)) }
        let isClosed = close(session)
        self.session = nil
        return isClosed
    }

    /// Closes the client and opens another, after `restartNeeded` or a stall. Partitions come back
    /// as new assignments, at their committed offsets; a static member keeps its own meanwhile.
    package func restart(
        committing positions: [CommitPosition] = [], timeout: Duration, now: Now
    ) throws(KafkaError) {
        _ = end(committing: positions, isLeaving: false, now: now) { $0.close(timeout: timeout) }
        try open()
    }
}

extension ErrorCode {
    /// Whether this is the code of an ordinary rebalance rather than of an error.
    fileprivate var isOrderly: Bool { self == .assignPartitions || self == .revokePartitions }
}
