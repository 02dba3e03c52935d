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

    private struct State {
        var isUnderWay = false
        var isCancelled = false
        var answers: Answers?
        var isUnanswered = false
    }

    private let state = Mutex(State())

    private static let timeout = Duration.seconds(2)

    /// Whether no broker has answered the last request.
    var isUnanswered: Bool { state.withLock { $0.isUnanswered } }

    /// The answers since the last call; nil if there are none.
    func takeAnswers() -> Answers? {
        state.withLock { state in
            defer { state.answers = nil }
            return state.answers
        }
    }

    /// Starts asking for the end offsets. Does nothing while the previous request is under way.
    func begin(
        with client: Client, topics: [Topic], _ partitions: [TopicPartition], now: MonotonicTime
    ) {
        let mayBegin = state.withLock { state in
            guard !state.isUnderWay, !state.isCancelled else { return false }
            state.isUnderWay = true
            return true
        }
        guard mayBegin else { return }
        do throws(SystemError) {
            try NamedThread.detach(name: "kafka-ends") { [self] in
                let (answers, isUnanswered) = ask(client, topics, partitions)
                state.withLock { state in
                    precondition(state.isUnderWay, "an answer to a question that nobody has asked")
                    state.isUnderWay = false
                    state.isUnanswered = isUnanswered
                    state.answers = Answers(askedAt: now, partitions: answers)
                }
            }
        } catch {
            // Without a thread nothing is asked now; the next `begin` tries again.
            state.withLock { $0.isUnderWay = false }
        }
    }

    /// Prevents further requests; one under way ends by itself.
    func cancel() { state.withLock { $0.isCancelled = true } }

    /// Asks for the end offsets. A leader that does not answer delays the answers for all
    /// partitions by one timeout, however many partitions it leads.
    private func ask(
        _ client: Client, _ topics: [Topic], _ partitions: [TopicPartition]
    ) -> (answers: [TopicPartition: Answer], isUnanswered: Bool) {
        let list = TopicPartitionList(capacity: partitions.count)
        for partition in partitions {
            list.append(topic: partition.topic, partition: partition.partition)
        }
        var questions = OffsetQuestions(
            topics: topics, client: client, isAskedApart: false, timeout: Self.timeout)
        var answers: [TopicPartition: Answer] = [:]
        do throws(RdkafkaError) {
            let ends = try questions.offsets(of: list, at: Offset.end)
            for (partition, end) in ends where end >= 0 { answers[partition] = .end(end) }
            for (partition, fault) in questions.faults { answers[partition] = .failed("\(fault)") }
        } catch {
            for partition in partitions { answers[partition] = .failed("\(error)") }
            return (answers, true)
        }
        return (answers, false)
    }
}
