// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc
internal import Synchronization

/// Wakes a thread that sleeps in `epoll_wait`, and costs one atomic load when it does not sleep.
///
/// The sleeper calls `prepareToSleep()`, looks at its queues once more, and only then sleeps with
/// `descriptor` in its epoll set; `awake()` afterwards. A waker that publishes before it calls
/// `wake()` is then either seen by that second look or finds the flag set.
package final class Waker: Sendable {
    /// An eventfd, readable after a wake-up.
    package let descriptor: CInt
    private let sleeping = Atomic<Bool>(false)

    package init() {
        descriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        precondition(descriptor >= 0, "eventfd: errno \(errno)")
    }

    deinit { close(descriptor) }

    package func wake() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        guard sleeping.load(ordering: .relaxed) else { return }
        signal()
    }

    /// Makes the descriptor readable whether or not anybody sleeps.
    package func signal() {
        var one: UInt64 = 1
        // Fails only when the counter is full, and then it is readable anyway.
        _ = write(descriptor, &one, 8)
    }

    package func prepareToSleep() {
        sleeping.store(true, ordering: .relaxed)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
    }

    package func awake() {
        sleeping.store(false, ordering: .relaxed)
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}
