// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import Synchronization

/// How much of refused bodies is read and thrown away. A client that still sends when its connection is
/// closed may not see the answer, so the body is let run out; but not at any cost, or a flood of refused
/// bodies would keep the thread busy.
final class DrainedBytes: Sendable {
    private struct State {
        var usedUntil = NIODeadline.uptimeNanoseconds(0)
    }

    private let state = Mutex(State())

    /// 8 MiB a second is some 10 ms of a core.
    static let perSecond = 8 << 20

    /// - Returns: whether so many bytes may be read.
    func take(_ bytes: Int, now: NIODeadline = .now()) -> Bool {
        state.withLock { state in
            let from = max(state.usedUntil, now)
            guard from - now < .seconds(1), (0...Self.perSecond).contains(bytes) else {
                return false
            }
            let nanoseconds = Int64(bytes) * 1_000_000_000 / Int64(Self.perSecond)
            state.usedUntil = from + .nanoseconds(nanoseconds)
            return true
        }
    }
}
