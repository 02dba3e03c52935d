// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

extension EventConsumer {
    // MARK: Positions

    /// Hands positions to librdkafka, which commits them within `auto.commit.interval.ms`, and
    /// returns how many it took. Ignores positions of an earlier assignment and those that are not
    /// above the stored one.
    @discardableResult
    package func store(_ positions: [CommitPosition]) -> Int {
        guard let session else { return 0 }
        let list = TopicPartitionList(capacity: positions.count)
        var offered: [CommitPosition] = []
        for position in positions {
            guard let row = partitions.row(position.assignment), position.offset > row.stored
            else { continue }
            precondition(
                !replayed.contains(row.topic),
                "offsets are stored only for topics that are not tables")
            // Versions before 2.1 drop the metadata.
            list.append(
                topic: topics[row.topic], partition: row.partition, offset: position.offset,
                metadata: position.metadata)
            offered.append(position)
        }
        guard !offered.isEmpty else { return 0 }
        session.client.store(list)
        precondition(
            list.count == offered.count,
            "the library answers for the partitions offered, and for no others")
        var taken = 0
        // librdkafka refuses the position of a partition that now belongs to another member.
        for (index, position) in offered.enumerated() where list[index].error == .none {
            partitions.update(position.assignment) { $0.stored = position.offset }
            taken += 1
        }
        return taken
    }

    /// Says that records below this offset have ended, so that reading them again is no fault.
    package func hasEnded(_ id: AssignmentID, below offset: Int64) {
        partitions.update(id) { $0.endedBefore = offset }
    }

    // MARK: Back-pressure

    /// Pauses every assigned partition that is not paused yet. Their prefetched records are fetched
    /// again after the resume. The caller must keep polling meanwhile, or the group expels this
    /// member.
    ///
    /// - Parameter isWanted: whether to pause the partitions of the topic at this position in
    ///   `topics`.
    package func pauseAll(now: Now, where isWanted: (_ topic: Int) -> Bool = { _ in true }) {
        let flowing = partitions.assigned {
            !$0.isPaused && !$0.isMuted && isWanted($0.topic)
        }
        pause(flowing, now: now)
    }

    package func pause(_ id: AssignmentID, now: Now) {
        guard let row = partitions.row(id), !row.isPaused, !row.isMuted else { return }
        pause([id], now: now)
    }

    /// Resumes exactly the partitions that these methods paused.
    package func resumeAll(now: Now, where isWanted: (_ topic: Int) -> Bool = { _ in true }) {
        resume(
            partitions.assigned { $0.isPaused && !$0.isHeld && isWanted($0.topic) }, now: now)
    }

    package func resume(_ id: AssignmentID, now: Now) {
        guard partitions.row(id)?.isPaused == true else { return }
        resume([id], now: now)
    }

    /// Whether records of the assignment may be dealt with: it is ours, and the group is not taking it
    /// back.
    package func isReading(_ id: AssignmentID) -> Bool {
        partitions.row(id).map { !$0.isMuted } ?? false
    }

    /// Pauses one partition until `release`, whatever is resumed meanwhile. Records of it that were
    /// read ahead still come; calling this again is without effect.
    package func hold(_ id: AssignmentID, now: Now) {
        partitions.update(id) { $0.isHeld = true }
        pause(id, now: now)
    }

    /// Ends `hold`; without effect for a partition that is not held.
    ///
    /// - Parameter resumes: whether the partition is read again at once. Otherwise `resumeAll` does
    ///   that.
    package func release(_ id: AssignmentID, resumes: Bool = true, now: Now) {
        guard partitions.row(id)?.isHeld == true else { return }
        partitions.update(id) { $0.isHeld = false }
        if resumes { resume(id, now: now) }
    }

    package var pausedPartitions: [AssignmentID] { partitions.assigned { $0.isPaused } }

    private func pause(_ ids: [AssignmentID], now: Now) {
        guard let session, !ids.isEmpty else { return }
        precondition(
            ids.allSatisfy { partitions.row($0)?.isPaused == false },
            "only an assigned partition that is not paused is paused")
        let list = list(of: ids)
        do {
            try session.client.pause(list)
        } catch {
            return warn(error, now: now)
        }
        for (index, id) in ids.enumerated() where list[index].error == .none {
            partitions.update(id) { $0.isPaused = true }
        }
    }

    private func resume(_ ids: [AssignmentID], now: Now) {
        resume(ids)
        // A partition counts as silent from its resume on.
        for id in ids { partitions.update(id) { $0.activeAt = now.monotonic } }
    }

    func resume(_ ids: [AssignmentID]) {
        guard let session, !ids.isEmpty else { return }
        precondition(
            ids.allSatisfy { partitions.row($0)?.isPaused == true },
            "only an assigned partition that is paused is read again")
        // An error means that the partition is no longer assigned, and needs no handling.
        try? session.client.resume(list(of: ids))
        for id in ids { partitions.update(id) { $0.isPaused = false } }
    }

    private func list(of ids: [AssignmentID]) -> TopicPartitionList {
        let list = TopicPartitionList(capacity: ids.count)
        for id in ids {
            let (topic, partition) = partitions.partition(of: id)
            list.append(topic: topics[topic], partition: partition)
        }
        return list
    }
}
