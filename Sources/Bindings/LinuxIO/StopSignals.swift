// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// SIGTERM and SIGINT, for programs that wait for them in a place of their own.
package enum StopSignals {
    /// Blocks both in this thread and in all that it starts. To be called before there are other
    /// threads: one that does not block them would take the signal from the one that waits.
    package static func block() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
