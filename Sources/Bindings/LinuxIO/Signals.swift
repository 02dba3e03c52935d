// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Signals that would end the process without a word.
package enum Signals {
    /// Makes the whole process ignore these signals until a handler is set for them.
    package static func ignore(_ signals: [CInt]) {
        for signal in signals { Glibc.signal(signal, SIG_IGN) }
    }
}

/// SIGPIPE, which ends a process that writes to a connection whose peer has gone.
package enum BrokenPipe {
    /// Has the whole process ignore it, for good; writes then fail with EPIPE. May be repeated.
    package static func ignoreSignal() { Signals.ignore([SIGPIPE]) }
}
