// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// Signals that ask for a stop, counted: for a program that looks often enough by itself.
package enum StopRequests {
    /// The count: an atomic, one of the few things that a signal handler may touch.
    private static let number = Atomic<Int>(0)
    /// The signals that have come while they were held, one bit each.
    private static let held = Atomic<UInt64>(0)

    /// Of `held`: no signal's, and set once signals are.
    private static let isHoldingBit: UInt64 = 1

    /// SIGINT, SIGTERM and SIGHUP.
    package static let usual: [CInt] = [SIGINT, SIGTERM, SIGHUP]
    /// Those by which something else may be asked of a program that runs for long.
    private static let holdable = usual + [SIGUSR1, SIGUSR2]

    /// Remembers signals until it is known what the program does with them, which `count` or
    /// `release` says: one that comes while it reads its command line must neither end a program
    /// that would have stopped in order, nor, if it is process 1, be lost.
    ///
    /// What the parent has had ignored, as `nohup` does, stays so.
    package static func hold() {
        // Made before the first signal can come: a handler must not initialise it.
        held.bitwiseOr(isHoldingBit, ordering: .relaxed)
        for signal in holdable where !isIgnored(signal) {
            Glibc.signal(signal) { signal in
                StopRequests.held.bitwiseOr(1 << UInt64(signal), ordering: .relaxed)
            }
        }
    }

    /// From now on signals do what they do to any program, and those that were held do so now.
    package static func release() { release(holdable) }

    private static func release(_ signals: [CInt]) {
        for signal in signals where !isIgnored(signal) { Glibc.signal(signal, SIG_DFL) }
        // To the process: this thread may be one of libdispatch's, which block them.
        for signal in signals where wasHeld(signal) { kill(getpid(), signal) }
    }

    /// From now on, for the whole process, the signals end nothing by themselves. Those that were
    /// held are counted. Any other that was held is released.
    package static func count(_ signals: [CInt] = usual) {
        _ = number.load(ordering: .relaxed)
        var counted = sigset_t()
        sigemptyset(&counted)
        for signal in signals {
            Glibc.signal(signal) { _ in
                StopRequests.number.add(1, ordering: .relaxed)
            }
            sigaddset(&counted, signal)
            if wasHeld(signal) { number.add(1, ordering: .relaxed) }
        }
        let isHolding = held.load(ordering: .relaxed) & isHoldingBit != 0
        if isHolding {
            held.bitwiseAnd(~isHoldingBit, ordering: .relaxed)
            release(holdable.filter { !signals.contains($0) })
        }
        // A parent that starts us from one of libdispatch's threads hands its blocked signals on.
        pthread_sigmask(SIG_UNBLOCK, &counted, nil)
    }

    /// How many have come.
    package static var received: Int { number.load(ordering: .relaxed) }

    /// Whether it has come while it was held, which is said once.
    private static func wasHeld(_ signal: CInt) -> Bool {
        let bit: UInt64 = 1 << UInt64(signal)
        return held.bitwiseAnd(~bit, ordering: .relaxed).oldValue & bit != 0
    }

    private static func isIgnored(_ signal: CInt) -> Bool {
        var action = sigaction()
        sigaction(signal, nil, &action)
        let handler = action.__sigaction_handler.sa_handler
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
