// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

extension EventConsumer {
    /// Answers announced rebalances in order, until one needs time.
    func answerRebalances(_ now: Now) {
        while !rebalances.isEmpty {
            if pending != nil, !preempts(rebalances[0]) { return }
            answer(rebalances.removeFirst(), now: now)
        }
    }

    /// A loss or an error makes whatever was being answered pointless.
    private func preempts(_ rebalance: Rebalance) -> Bool {
        if case .assigning = pending { return true }
        return rebalance.isLost || !rebalance.code.isOrderly
    }

    private func answer(_ rebalance: Rebalance, now: Now) {
        pending = nil
        let isKept = session?.client.isCooperative == true
        switch rebalance.code {
        case .assignPartitions:
            // Incremental lists name what is new; what waits to be started is ours still.
            let list = rebalance.partitions.copy()
            if isKept, let unstarted { list.append(contentsOf: unstarted.list) }
            forgetUnstarted()
            pending = .assigning(
                StartResolver(
                    list: list, topics: session?.topics ?? [],
                    replayed: replayed, startFrom: startFrom, now: now))
            advanceAssignment(now)
        case .revokePartitions where !rebalance.isLost:
            forgetUnstarted(isKept ? rebalance.partitions : nil)
            beginRevoke(rebalance.partitions, now: now)
        default:
            if !rebalance.code.isOrderly { warn(RdkafkaError(rebalance.code), now: now) }
            forgetUnstarted(isKept && rebalance.code.isOrderly ? rebalance.partitions : nil)
            let lost = assignments(of: rebalance.partitions)
            letGo(rebalance.partitions, lost, now: now)
            if !lost.isEmpty { append(.lost(lost)) }
        }
    }

    // MARK: Revocation

    /// The answer is deferred until the caller has finished what it was given of these partitions.
    private func beginRevoke(_ list: TopicPartitionList, now: Now) {
        let revoked = assignments(of: list)
        guard !revoked.isEmpty else { return letGo(list, [], now: now) }
        precondition(pending == nil, "a rebalance is begun while another is answered")
        for id in revoked { partitions.update(id) { $0.isMuted = true } }
        pending = .revoking(list, revoked)
        append(.revoking(revoked))
    }

    /// Whether the group waits for `completeRevoke`.
    package var isRevoking: Bool {
        if case .revoking = pending { true } else { false }
    }

    /// Stores these positions and gives the partitions of the last `revoking` fact back; the
    /// library commits on the way. Stores nothing if they were lost meanwhile. Without effect when
    /// nothing is being revoked.
    package func completeRevoke(store positions: [StoredPosition], now: Now) {
        guard case .revoking(let list, let revoked) = pending, let session else { return }
        pending = nil
        if session.client.isAssignmentLost {
            append(.lost(revoked))
        } else {
            store(positions)
        }
        letGo(list, revoked, now: now)
        answerRebalances(now)
    }

    /// Resumes exactly those that we paused, because the flag outlives the assignment and a resumed
    /// partition that was not paused is read twice; then unassigns.
    private func letGo(_ list: TopicPartitionList, _ ids: [AssignmentID], now: Now) {
        resume(ids.filter { partitions.row($0)?.isPaused == true })
        for id in ids { partitions.update(id) { $0.isAssigned = false } }
        // What was never started the library does not know.
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
            // The library refuses when these partitions never were assigned to it.
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

    /// Stores, leaves the group and lets everything go; false when the group could not be left in
    /// time, and will notice by itself. Every partition still held is reported as `lost`.
    @discardableResult
    package func close(
        storing positions: [StoredPosition] = [], timeout: Duration, now: Now
    ) -> Bool {
        guard let session else { return true }
        if case .revoking = pending {
            completeRevoke(store: positions, now: now)
        } else {
            store(positions)
        }
        if pending != nil || !rebalances.isEmpty {
            // The library would wait for this answer before it closes.
            try? session.client.unassignAll()
        }
        pending = nil
        rebalances.removeAll()
        forgetUnstarted()
        let held = partitions.assigned()
        for id in held { partitions.update(id) { $0.isAssigned = false } }
        if !held.isEmpty { append(.lost(held)) }
        let isClosed = session.close(timeout: timeout)
        self.session = nil
        return isClosed
    }

    /// Closes and opens again, after `restartNeeded` or a stall: partitions come back under new
    /// assignments and at their committed positions.
    package func restart(
        storing positions: [StoredPosition] = [], timeout: Duration, now: Now
    ) throws(KafkaError) {
        close(storing: positions, timeout: timeout, now: now)
        try open()
    }
}

extension ErrorCode {
    /// Whether a rebalance goes as it should.
    fileprivate var isOrderly: Bool { self == .assignPartitions || self == .revokePartitions }
}
