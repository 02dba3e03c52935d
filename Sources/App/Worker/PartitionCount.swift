// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Synchronization

/// Asks Kafka how many partitions the topics have together that are read in the group: each worker's
/// share of a limit is its share of these. While the worker runs it asks on a thread of its own,
/// since the answer may take seconds.
final class PartitionCount: Sendable {
    /// What came of a question.
    enum Answer: Sendable {
        case count(Int)
        /// Kafka did not say.
        case unknown
    }

    private struct State {
        var isUnderWay = false
        var answer: Answer?
    }

    /// How long to wait where Kafka did not say.
    static let retryAfter = Duration.seconds(30)

    private let state = Mutex(State())

    /// Waits for the answer.
    ///
    /// - Returns: nil if Kafka does not say.
    static func ask(_ plan: WorkerPlan, logger: Logger) -> Int? {
        do throws(KafkaError) {
            let admin = try TopicAdmin(settings: plan.kafka, logger: logger)
            var count = 0
            for topic in plan.consumedTopics { count += Int(try admin.partitionCount(of: topic)) }
            return count
        } catch {
            warn(logger, cause: "\(error)")
            return nil
        }
    }

    /// Starts asking. Does nothing while the question before is under way.
    func begin(_ plan: WorkerPlan, waker: Waker, logger: Logger) {
        let mayBegin = state.withLock { state in
            guard !state.isUnderWay else { return false }
            state.isUnderWay = true
            return true
        }
        guard mayBegin else { return }
        do throws(SystemError) {
            try NamedThread.detach(name: "partitions") { [self] in
                let answer = Self.ask(plan, logger: logger).map { Answer.count($0) } ?? .unknown
                state.withLock { $0 = State(isUnderWay: false, answer: answer) }
                waker.signal()
            }
        } catch {
            Self.warn(logger, cause: "\(error)")
            state.withLock { $0 = State(isUnderWay: false, answer: .unknown) }
        }
    }

    private static func warn(_ logger: Logger, cause: String) {
        logger.warning(
            "cannot count the partitions, so this worker alone may send what a limit allows the fleet",
            metadata: ["cause": "\(cause)"])
    }

    /// The answer, once.
    func takeAnswer() -> Answer? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }
}
