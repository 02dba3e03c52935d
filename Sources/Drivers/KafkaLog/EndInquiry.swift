// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel
internal import Rdkafka
internal import Synchronization

/// Asks brokers for the end offsets of partitions, on a thread of its own: a partition without a
/// leader can block the request for seconds, which must not block the planner.
final class EndInquiry: Sendable {
    enum Answer: Hashable {
        case end(Int64)
        case failed(String)
    }

    struct Answers {
        var askedAt: MonotonicTime
        var partitions: [TopicPartition: Answer]
    }

    private let question = BackgroundQuestion<Answers>(thread: "kafka-ends")
    private let unanswered = Atomic(false)

    private static let timeout = Duration.seconds(2)

    /// Whether no broker has answered the last request.
    var isUnanswered: Bool { unanswered.load(ordering: .relaxed) }

    /// The answers since the last call; nil if there are none.
    func takeAnswers() -> Answers? { question.takeAnswer() }

    /// Starts asking for the end offsets. Does nothing while the previous request is under way.
    func begin(
        with client: Client, topics: [Topic], _ partitions: [TopicPartition], now: MonotonicTime
    ) {
        // Without a thread nothing is asked now; the next `begin` tries again.
        try? question.begin { [self] in ask(client, topics, partitions, now: now) }
    }

    /// Prevents further requests; one under way ends by itself.
    func cancel() { question.cancel() }

    /// Asks for the end offsets. A leader that does not answer delays the answers for all
    /// partitions by one timeout, however many partitions it leads.
    private func ask(
        _ client: Client, _ topics: [Topic], _ partitions: [TopicPartition], now: MonotonicTime
    ) -> Answers {
        let list = TopicPartitionList(capacity: partitions.count)
        for partition in partitions {
            list.append(topic: partition.topic, partition: partition.partition)
        }
        var questions = OffsetQuestions(
            topics: topics, client: client, isAskedApart: false, timeout: Self.timeout)
        var answers = Answers(askedAt: now, partitions: [:])
        do throws(RdkafkaError) {
            let ends = try questions.offsets(of: list, at: Offset.end)
            for (partition, end) in ends where end >= 0 {
                answers.partitions[partition] = .end(end)
            }
            for (partition, fault) in questions.faults {
                answers.partitions[partition] = .failed("\(fault)")
            }
            unanswered.store(false, ordering: .relaxed)
        } catch {
            for partition in partitions { answers.partitions[partition] = .failed("\(error)") }
            unanswered.store(true, ordering: .relaxed)
        }
        return answers
    }
}
