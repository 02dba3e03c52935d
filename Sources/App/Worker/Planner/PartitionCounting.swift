// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Logging
internal import PushModel

/// Counts the partitions of the worker's topics again and again until Kafka says.
struct PartitionCounting {
    private let count = PartitionCount()
    /// When to count again, where Kafka did not say.
    private var dueAt: MonotonicTime?
    private(set) var isUnderWay = false

    /// Asks Kafka, which may have more partitions since.
    mutating func begin(_ plan: WorkerPlan, waker: Waker, logger: Logger, now: Now) {
        dueAt = nil
        isUnderWay = true
        if !count.begin(plan, waker: waker, logger: logger) { failed(now: now) }
    }

    /// What Kafka has said, once; asks again where the time for that has come.
    mutating func advance(
        _ plan: WorkerPlan, waker: Waker, logger: Logger, now: Now
    ) -> PartitionCount.Counts? {
        let answer = isUnderWay ? count.takeAnswer() : nil
        if let answer {
            isUnderWay = false
            if case .counts(let counts) = answer { return counts }
            failed(now: now)
        }
        if let time = dueAt, time <= now.monotonic {
            begin(plan, waker: waker, logger: logger, now: now)
        }
        return nil
    }

    /// Kafka did not say.
    mutating func failed(now: Now) {
        isUnderWay = false
        dueAt = now.monotonic + PartitionCount.retryAfter
    }
}
