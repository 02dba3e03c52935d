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
            let lost = epochs(of: rebalance.partitions)
            letGo(rebalance.partitions, lost, now: now)
            if !lost.isEmpty { append(.lost(lost)) }
        }
    }

    // MARK: Assignment

    /// One attempt at finding the start positions, when it is time for one.
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
            // Reading from anywhere else could skip or flood; nothing is read until the restart.
            answerWithoutPartitions(resolver.list, now: now)
            askForRestart(error)
        }
    }

    /// Asks again where the rest of the assignment begins, when it is time for it.
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

    /// - Parameter taken: nil for all of them.
    private func forgetUnstarted(_ taken: TopicPartitionList? = nil) {
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

    /// Begins to read these beside those that are being read already.
    private func start(_ starts: [StartResolver.Start], now: Now) {
        guard let client = session?.client else { return }
        let list = TopicPartitionList(capacity: starts.count)
        for start in starts {
            list.append(
                topic: topics[start.topic], partition: start.partition,
                offset: start.decision.offset)
        }
        do {
            if client.isCooperative {
                try client.incrementalAssign(list)
            } else {
                // An eager member can only replace its whole assignment: what is being read goes on
                // behind the last record that was handed out.
                let running = partitions.assigned()
                for id in running {
                    guard let row = partitions.row(id) else { continue }
                    list.append(
                        topic: topics[id.topic], partition: id.partition, offset: row.received + 1)
                }
                try client.assign(list)
                // The library has committed what it had and forgotten it: say it again.
                for id in running { partitions.update(id) { $0.stored = $0.startOffset } }
            }
        } catch {
            answerWithoutPartitions(list, now: now)
            return askForRestart(error)
        }
        for start in starts { isReadAgain(start.topic, start.partition) }
        let assignments = starts.map { start in
            Assignment(
                partition: partitions.assign(
                    topic: start.topic, partition: start.partition,
                    startOffset: start.decision.offset, now: now.monotonic),
                startOffset: start.decision.offset)
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

    // MARK: Revocation

    /// The answer is deferred until the caller has finished what it was given of these partitions.
    private func beginRevoke(_ list: TopicPartitionList, now: Now) {
        let revoked = epochs(of: list)
        guard !revoked.isEmpty else { return letGo(list, [], now: now) }
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
    private func letGo(_ list: TopicPartitionList, _ ids: [PartitionEpoch], now: Now) {
        resume(ids.filter { partitions.row($0)?.isPaused == true })
        for id in ids { partitions.update(id) { $0.isAssigned = false } }
        // What was never started the library does not know.
        let held = Set(ids.map { TopicPartition(topic: topics[$0.topic], partition: $0.partition) })
        answerWithoutPartitions(list.filter { held.contains(TopicPartition($0)) }, now: now)
    }

    private func answerWithoutPartitions(_ list: TopicPartitionList, now: Now) {
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

    private func epochs(of list: TopicPartitionList) -> [PartitionEpoch] {
        (0..<list.count).compactMap { index in
            let element = list[index]
            guard let topic = topics.firstIndex(of: element.topic) else { return nil }
            return partitions.epoch(topic: topic, partition: element.partition)
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

    /// Closes and opens again, after `restartNeeded` or a stall: partitions come back with new
    /// epochs and their committed positions.
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
