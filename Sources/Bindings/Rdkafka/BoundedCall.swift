// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// A call that may never return. It runs on a thread of its own, which is left where it is if the call
/// takes too long, with what the call holds.
enum BoundedCall {
    private enum Outcome: Int, AtomicRepresentable { case none, no, yes, left }

    private final class Answer: Sendable { let outcome = Atomic(Outcome.none) }

    /// How many calls were left and have not returned yet.
    static let leftCount = Atomic<Int>(0)

    /// - Returns: nil if the call takes too long, or no thread can be had.
    static func run(within timeout: Duration, _ body: @escaping @Sendable () -> Bool) -> Bool? {
        let answer = Answer()
        let isRunning = DetachedThread.run {
            let before = answer.outcome.exchange(
                body() ? .yes : .no, ordering: .acquiringAndReleasing)
            if before == .left { leftCount.subtract(1, ordering: .relaxed) }
        }
        guard isRunning else { return nil }
        let deadline = ContinuousClock.now + timeout
        while answer.outcome.load(ordering: .relaxed) == .none, ContinuousClock.now < deadline {
            usleep(1000)
        }
        let (isLeft, outcome) = answer.outcome.compareExchange(
            expected: .none, desired: .left, ordering: .acquiringAndReleasing)
        guard isLeft else { return outcome == .yes }
        leftCount.add(1, ordering: .relaxed)
        return nil
    }
}
