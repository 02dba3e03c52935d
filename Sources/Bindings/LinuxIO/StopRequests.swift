// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// SIGINT, SIGTERM and SIGHUP, counted: for a program that looks often enough by itself.
package enum StopRequests {
    /// Of the few things that a signal handler may touch.
    private static let number = Atomic<Int>(0)

    /// From now on, for the whole process, the signals end nothing by themselves.
    package static func count() {
        // Made before the first signal can come: a handler must not initialise it.
        _ = number.load(ordering: .relaxed)
        var counted = sigset_t()
        sigemptyset(&counted)
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            Glibc.signal(signal) { _ in
                StopRequests.number.add(1, ordering: .relaxed)
            }
            sigaddset(&counted, signal)
        }
        // A parent that starts us from one of libdispatch's threads hands its blocked signals on.
        pthread_sigmask(SIG_UNBLOCK, &counted, nil)
    }

    /// How many have come.
    package static var received: Int { number.load(ordering: .relaxed) }
}
