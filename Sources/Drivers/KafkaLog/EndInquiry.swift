// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel
internal import Rdkafka
internal import Synchronization

/// Asks brokers for the ends of partitions, on a thread of its own for as long as that takes: a
/// partition without a leader keeps it for a second, and must not keep the planner.
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
    }

    private let state = Mutex(State())

    /// For all partitions at once; then for each by itself, if one of them spoils that.
    private static let timeoutTogether = Duration.seconds(2)
    private static let timeoutAlone = Duration.seconds(1)

    /// What has been answered since the last call.
    func takeAnswers() -> Answers? {
        state.withLock { state in
            defer { state.answers = nil }
            return state.answers
        }
    }

    /// Does nothing while the question before is still under way.
    func begin(with client: Client, _ partitions: [TopicPartition], now: MonotonicTime) {
        let mayBegin = state.withLock { state in
            guard !state.isUnderWay, !state.isCancelled else { return false }
            state.isUnderWay = true
            return true
        }
        guard mayBegin else { return }
        do throws(SystemError) {
            try NamedThread.detach(name: "kafka-ends") { [self] in
                let answers = ask(client, partitions)
                state.withLock { state in
                    state.isUnderWay = false
                    state.answers = Answers(askedAt: now, partitions: answers)
                }
            }
        } catch {
            // The next look asks again.
            state.withLock { $0.isUnderWay = false }
        }
    }

    /// A question that is under way ends after the partition that it is at.
    func cancel() { state.withLock { $0.isCancelled = true } }

    private func ask(
        _ client: Client, _ partitions: [TopicPartition]
    ) -> [TopicPartition: Answer] {
        var answers = ask(client, partitions, timeout: Self.timeoutTogether)
        let isAnswered = answers.values.contains { if case .end = $0 { true } else { false } }
        guard !isAnswered, partitions.count > 1 else { return answers }
        for partition in partitions {
            guard !state.withLock({ $0.isCancelled }) else { break }
            answers.merge(ask(client, [partition], timeout: Self.timeoutAlone)) { $1 }
        }
        return answers
    }

    private func ask(
        _ client: Client, _ partitions: [TopicPartition], timeout: Duration
    ) -> [TopicPartition: Answer] {
        let list = TopicPartitionList(capacity: partitions.count)
        for partition in partitions {
            list.append(
                topic: partition.topic, partition: partition.partition, offset: Offset.end)
        }
        var answers: [TopicPartition: Answer] = [:]
        do throws(RdkafkaError) {
            let told = try client.offsetsForTimes(list, timeout: timeout)
            for index in 0..<told.count {
                let element = told[index]
                answers[TopicPartition(element)] =
                    element.error == .none && element.offset >= 0
                    ? .end(element.offset) : .failed("\(RdkafkaError(element.error))")
            }
        } catch {
            for partition in partitions { answers[partition] = .failed("\(error)") }
        }
        return answers
    }
}
