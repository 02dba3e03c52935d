// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Synchronization

/// Bounds how often the whole process connects: Apple treats a provider that opens and closes
/// connections fast as an attack. Shared by every pool of every delivery thread.
package final class ConnectBudget: Sendable {
    private struct State {
        var tokens: Double
        var filledAt: MonotonicTime
    }

    private let perSecond: Double
    private let burst: Double
    private let state: Mutex<State>

    package init(perSecond: Int = 10, burst: Int = 20) {
        self.perSecond = Double(max(1, perSecond))
        self.burst = Double(max(1, burst))
        state = Mutex(State(tokens: Double(burst), filledAt: MonotonicTime(nanoseconds: 0)))
    }

    /// Takes one connect from the budget. Returns nil if the connect may be made now, otherwise the
    /// time at which to ask again.
    package func take(at now: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            let elapsed = Double((now - state.filledAt).nanoseconds) / 1e9
            state.tokens = min(burst, state.tokens + max(0, elapsed) * perSecond)
            state.filledAt = max(now, state.filledAt)
            guard state.tokens < 1 else {
                state.tokens -= 1
                return nil
            }
            return now + .nanoseconds(Int64((1 - state.tokens) / perSecond * 1e9))
        }
    }
}
