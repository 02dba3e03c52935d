// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// SIGPIPE, which ends a process that writes to a connection whose peer has gone.
package enum BrokenPipe {
    /// Has the whole process ignore it, for good; writes then fail with EPIPE. May be repeated.
    package static func ignoreSignal() {
        signal(SIGPIPE, SIG_IGN)
    }
}
