// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import PushModel
internal import Rdkafka

/// Commits with metadata, which librdkafka's automatic ones do not have.
extension EventConsumer {
    /// A commit that the broker has not answered yet.
    struct CommitUnderWay {
        let queue: EventQueue
        let positions: [CommitPosition]
    }

    /// Commits positions with their metadata, every `auto.commit.interval.ms` at most, and does not
    /// wait for the answer. Those that are not committed yet must come again, or later ones.
    /// Ignores positions of an earlier assignment and those that are not above the committed one.
    ///
    /// librdkafka is not given the positions: its own commits would wipe the metadata. Only a member
    /// of a cooperative group leaves commits to it, since any other that is under way while the group
    /// joins loses the assignment (librdkafka 4059).
    ///
    /// - Returns: how many positions are not committed yet.
    package func commit(_ positions: [CommitPosition], now: Now) -> Int {
        guard let client = session?.client else { return 0 }
        if client.isCooperative { return store(positions) }
        endCommit()
        let open = positions.filter { position in
            guard let row = partitions.row(position.assignment) else { return false }
            return position.offset > row.stored
                || position.metadata != nil && position.metadata != row.metadata
        }
        guard !open.isEmpty, commitUnderWay == nil, now.monotonic >= nextCommitAt,
            let queue = try? client.beginCommit(list(of: open))
        else { return open.count }
        commitUnderWay = CommitUnderWay(queue: queue, positions: open)
        nextCommitAt = now.monotonic + commitInterval
        return open.count
    }

    /// Commits the positions of all partitions of tables with this text, by which `PartitionOwners`
    /// finds their owner. The offsets mean nothing: a table is read from its beginning. A commit of
    /// another member's partition is refused by the coordinator. Does not wait for the answer, so
    /// call it again from time to time.
    package func announce(_ text: String) {
        guard let client = session?.client else { return }
        let list = TopicPartitionList()
        for id in partitions.assigned() {
            guard let row = partitions.row(id), replayed.contains(row.topic) else { continue }
            list.append(
                topic: topics[row.topic], partition: row.partition, offset: row.received + 1,
                metadata: text)
        }
        guard !list.isEmpty else { return }
        if client.isCooperative {
            client.store(list)
        } else {
            announcing = try? client.beginCommit(list)
        }
    }

    /// Takes the broker's answer to the last commit, if it is there.
    private func endCommit() {
        guard let commit = commitUnderWay, let answer = commit.queue.commitAnswer() else { return }
        commitUnderWay = nil
        guard case .success(let list) = answer, list.count == commit.positions.count else { return }
        for (index, position) in commit.positions.enumerated() where list[index].error == .none {
            committed(position)
        }
    }

    /// Commits positions of partitions that are given up, with their metadata, and waits a second
    /// at most for the coordinator, which answers at once while a group joins. What it refuses for a
    /// reason that passes is committed again within that second. librdkafka is given the rest: it
    /// tries once more as it gives the partitions back, before version 2.1 without the metadata.
    func commitOrStore(_ positions: [CommitPosition]) {
        commitUnderWay = nil
        var open = positions.filter { partitions.row($0.assignment) != nil }
        guard !open.isEmpty, let client = session?.client, !client.isCooperative else {
            store(positions)
            return
        }
        let deadline = ContinuousClock.now + Self.lastCommitTimeout
        while let cause = commit(&open, client: client, by: deadline) {
            guard cause.code.passesByItself,
                ContinuousClock.now + Self.lastCommitInterval < deadline
            else {
                append(.notCommitted(refusal(of: open, cause)))
                break
            }
            usleep(UInt32(Self.lastCommitInterval / .microseconds(1)))
        }
        store(open)
    }

    /// Commits once, and leaves in `open` what is not committed.
    ///
    /// - Returns: why the first of them is not; nil if all are committed.
    private func commit(
        _ open: inout [CommitPosition], client: Client, by deadline: ContinuousClock.Instant
    ) -> RdkafkaError? {
        do throws(RdkafkaError) {
            let answer = try client.commit(
                list(of: open), timeout: deadline - ContinuousClock.now)
            precondition(
                answer.count == open.count,
                "the library answers for the open partitions, and for no others")
            let refused = open.indices.filter { answer[$0].error != .none }
            defer { open = refused.map { open[$0] } }
            return refused.first.map { RdkafkaError(answer[$0].error) }
        } catch {
            return error
        }
    }

    private func refusal(of open: [CommitPosition], _ cause: RdkafkaError) -> RefusedCommit {
        let refused = open.map { position in
            let (topic, partition) = partitions.partition(of: position.assignment)
            return RefusedCommit.Place(topic: topic, partition: partition)
        }
        return RefusedCommit(partitions: refused, cause: cause)
    }

    private func committed(_ position: CommitPosition) {
        partitions.update(position.assignment) { row in
            row.stored = max(row.stored, position.offset)
            row.metadata = position.metadata
        }
    }

    private func list(of positions: [CommitPosition]) -> TopicPartitionList {
        let list = TopicPartitionList(capacity: positions.count)
        for position in positions {
            let (topic, partition) = partitions.partition(of: position.assignment)
            precondition(
                !replayed.contains(topic),
                "offsets are committed only for topics that are not tables")
            list.append(
                topic: topics[topic], partition: partition, offset: position.offset,
                metadata: position.metadata)
        }
        return list
    }

    package static let lastCommitTimeout = Duration.seconds(1)
    private static let lastCommitInterval = Duration.milliseconds(50)
}
