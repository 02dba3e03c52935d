// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import LinuxIO
internal import Logging

/// Asks Kafka how many partitions the worker's topics have: its share of a limit is its share of those
/// that are read in the group, and each partition that it writes to has a share of its producer. While
/// the worker runs it asks on a thread of its own, since the answer may take seconds.
final class PartitionCount: Sendable {
    /// What came of a question.
    enum Answer: Sendable {
        case counts(Counts)
        /// Kafka did not say.
        case unknown
    }

    struct Counts: Sendable, Equatable {
        /// The partitions of `consumedTopics` together.
        var consumed: Int
        /// Those of each of `producedTopics`; 1 where Kafka did not say.
        var produced: [Int]
    }

    /// How long to wait where Kafka did not say.
    static let retryAfter = Duration.seconds(30)

    private let question = BackgroundQuestion<Answer>(thread: "partitions")

    /// Waits for the answer.
    ///
    /// - Returns: nil if Kafka does not say.
    static func ask(_ plan: WorkerPlan, logger: Logger) -> Counts? {
        do throws(KafkaError) {
            let admin = try TopicAdmin(settings: plan.kafka, logger: logger)
            var counts: [String: Int] = [:]
            for topic in plan.consumedTopics {
                counts[topic] = Int(try admin.partitionCount(of: topic))
            }
            let consumed = plan.consumedTopics.reduce(0) { $0 + counts[$1]! }
            // A topic that is only written to may be missing, or hidden from this user.
            let produced = plan.producedTopics.map { topic in
                counts[topic] ?? (try? admin.partitionCount(of: topic)).map(Int.init) ?? 1
            }
            return Counts(consumed: consumed, produced: produced)
        } catch {
            warn(logger, cause: "\(error)")
            return nil
        }
    }

    /// Starts asking. Does nothing while the question before is under way.
    ///
    /// - Returns: false if the question could not be asked.
    func begin(_ plan: WorkerPlan, waker: Waker, logger: Logger) -> Bool {
        do throws(SystemError) {
            try question.begin {
                Self.ask(plan, logger: logger).map { Answer.counts($0) } ?? .unknown
            } answered: {
                waker.signal()
            }
            return true
        } catch {
            Self.warn(logger, cause: "\(error)")
            return false
        }
    }

    private static func warn(_ logger: Logger, cause: String) {
        logger.warning(
            "cannot count the partitions, so this worker alone may send what a limit allows the fleet",
            metadata: ["cause": "\(cause)"])
    }

    /// The answer, once.
    func takeAnswer() -> Answer? { question.takeAnswer() }
}
