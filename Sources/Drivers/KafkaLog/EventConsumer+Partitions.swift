// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import PushModel
internal import Rdkafka

/// What Kafka has said of the partitions of event topics when it was asked for the ends of their logs.
struct PartitionAnswers: Sendable {
    /// The partitions that were asked about.
    var asked: Set<TopicPartition>
    /// Those whose ends nobody could tell, with the cause.
    var faults: [TopicPartition: RdkafkaError]
    /// The topics that Kafka did not know and knows, by their positions in the list.
    var found: [Int]
}

/// Which partitions Kafka cannot serve. librdkafka waits in silence for a leader that does not come or
/// does not answer, and is told at its next look at the metadata that a topic is gone: such a partition
/// looks like one to which nobody writes.
extension EventConsumer {
    /// Takes what Kafka has said of the partitions, and asks again if it is time: every ten seconds, or at
    /// every call while something is wrong. To be called every few seconds. Waits for nothing.
    ///
    /// A partition counts as unavailable, and a topic as missing, once two answers in a row say so, since
    /// an election takes a moment.
    package func watchPartitions(now: Now) {
        guard let session else { return }
        if let answers = partitionQuestion.takeAnswer() ?? nil { adopt(answers, now: now) }
        let isDoubted = !partitions.assigned { $0.looksWithoutEnd > 0 }.isEmpty
        let isWell = missing.isEmpty && unavailable.isEmpty && !isDoubted
        guard !isWell || now.monotonic >= askForPartitionsAt else { return }
        askForPartitionsAt = now.monotonic + Self.partitionsInterval
        let asked = partitions.assigned().compactMap { partitions.row($0) }.map {
            TopicPartition(topic: topics[$0.topic], partition: $0.partition)
        }
        let (client, handles, missing) = (session.client, session.topics, missing)
        // Without a thread nothing is asked now; the next call tries again.
        try? partitionQuestion.begin {
            Self.ask(client, handles, about: asked, missing: missing)
        }
    }

    private static let partitionsInterval = Duration.seconds(10)
    private static let partitionsTimeout = Duration.seconds(2)
    /// The library asks any broker for metadata, also one that does not answer.
    private static let attempts = 3

    /// - Returns: nil if no broker answers at all, which says nothing of single partitions.
    private static func ask(
        _ client: Client, _ topics: [Topic], about asked: [TopicPartition], missing: Set<Int>
    ) -> PartitionAnswers? {
        let list = TopicPartitionList(capacity: asked.count)
        for one in asked { list.append(topic: one.topic, partition: one.partition) }
        for _ in 0..<attempts {
            var questions = OffsetQuestions(
                topics: topics, client: client, isAskedApart: true,
                timeout: partitionsTimeout)
            guard (try? questions.offsets(of: list, at: Offset.end)) != nil else { continue }
            let found = missing.filter {
                (try? client.metadata(of: topics[$0], timeout: partitionsTimeout))?.error
                    == ErrorCode.none
            }
            return PartitionAnswers(
                asked: Set(asked), faults: questions.faults.mapValues { named($0, client) },
                found: found.sorted())
        }
        return nil
    }

    /// A time-out says which broker has failed last, if one has.
    private static func named(_ error: RdkafkaError, _ client: Client) -> RdkafkaError {
        guard error.code == .timedOut, let failure = client.connectionFailure else { return error }
        return RdkafkaError(error.code, message: "\(error.message): \(failure.broker)")
    }

    private func adopt(_ answers: PartitionAnswers, now: Now) {
        // Another member may have got the partitions of a topic that is there again.
        missing.subtract(answers.found)
        for id in partitions.assigned() {
            guard let row = partitions.row(id) else { continue }
            let place = TopicPartition(topic: topics[row.topic], partition: row.partition)
            guard answers.asked.contains(place) else { continue }
            let fault = answers.faults[place]
            partitions.update(id) { row in
                // The silence of one that is there again is counted from here.
                if fault == nil, row.isOutOfReach { row.activeAt = now.monotonic }
                row.looksWithoutEnd = fault == nil ? 0 : row.looksWithoutEnd + 1
            }
            if let fault {
                if row.looksWithoutEnd > 0 { noteOutOfReach(row, fault, now: now) }
            } else if row.isOutOfReach, !row.isRefused {
                isReadAgain(row.topic, row.partition)
            }
        }
    }

    private func noteOutOfReach(
        _ row: PartitionTable.Row, _ fault: RdkafkaError, now: Now
    ) {
        switch fault.code {
        // What this user may not read is told by the library.
        case .topicAuthorizationFailed: break
        case .unknownTopic, .unknownTopicOrPartition: missing.insert(row.topic)
        default: unavailable.note(row.topic, row.partition, fault, now: now.monotonic)
        }
    }
}
