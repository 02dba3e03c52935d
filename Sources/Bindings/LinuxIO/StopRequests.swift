// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// Signals that ask for a stop, counted: for a program that looks often enough by itself.
package enum StopRequests {
    /// The count: an atomic, one of the few things that a signal handler may touch.
    private static let number = Atomic<Int>(0)

    /// SIGINT, SIGTERM and SIGHUP.
    package static let usual: [CInt] = [SIGINT, SIGTERM, SIGHUP]

    /// From now on, for the whole process, the signals end nothing by themselves.
    package static func count(_ signals: [CInt] = usual) {
        // Made before the first signal can come: a handler must not initialise it.
        _ = number.load(ordering: .relaxed)
        var counted = sigset_t()
        sigemptyset(&counted)
        for signal in signals {
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
