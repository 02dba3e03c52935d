// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// The CPU time of one thread, read by another while the first one lives.
final class ThreadClock: Sendable {
    private let clock = Mutex<clockid_t?>(nil)

    /// Called by the thread that is to be watched.
    func start() {
        var id = clockid_t()
        guard pthread_getcpuclockid(pthread_self(), &id) == 0 else { return }
        clock.withLock { $0 = id }
    }

    /// What the thread has used so far; nil before it has begun and after it has gone.
    var used: Duration? {
        guard let id = clock.withLock({ $0 }) else { return nil }
        var time = timespec()
        guard clock_gettime(id, &time) == 0 else { return nil }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
