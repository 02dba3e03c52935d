// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Tells how long something would have taken on a machine with nothing else to do, from when it is
/// made: the time that has passed, divided by how many times longer computing has taken beside it than
/// it took the processor. So a limit means the same on a busy machine.
package final class Stopwatch: Sendable {
    private struct Work {
        /// What has passed while the thread computed, and what of it the thread had a processor for.
        var passed = Duration.zero
        var computed = Duration.zero
        var isOver = false
    }

    private final class Shared: Sendable {
        let work = Mutex(Work())
    }

    private let shared = Shared()
    private let start = ContinuousClock.now

    package init() {
        let shared = shared
        try? NamedThread.detach(name: "stopwatch") {
            while Self.measure(shared) { usleep(20_000) }
        }
    }

    deinit { shared.work.withLock { $0.isOver = true } }

    package var time: Duration {
        let passed = ContinuousClock.now - start
        // At least once, by this thread: what is measured may be over already.
        _ = Self.measure(shared)
        let work = shared.work.withLock { $0 }
        return passed * (work.computed / work.passed)
    }

    /// Computes for two milliseconds of the processor's time; false once nobody asks any more.
    private static func measure(_ shared: Shared) -> Bool {
        let (start, before) = (ContinuousClock.now, threadTime())
        while threadTime() - before < .milliseconds(2) {}
        let (passed, computed) = (ContinuousClock.now - start, threadTime() - before)
        return shared.work.withLock {
            $0.passed += passed
            $0.computed += computed
            return !$0.isOver
        }
    }

    private static func threadTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
