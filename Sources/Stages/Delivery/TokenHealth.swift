// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The device tokens of one pool to which APNs has answered 5xx. A fault that recurs for one token
/// while others are accepted is that token's own: its pushes back off together, one at a time.
/// While the pool's breaker is open such tokens let others go first, so that each probe is of
/// another token.
package struct TokenHealth: Sendable {
    private struct Fault {
        var at: MonotonicTime
        /// How many pushes the pool had had accepted by then.
        var accepted: UInt64
        /// How often the fault has recurred after the pool had accepted pushes to other tokens.
        var strikes = 0
        /// Nothing is sent to the token until then.
        var heldUntil = MonotonicTime(nanoseconds: .min)
    }

    /// The faults by a hash of the token's bytes.
    private var faults: [UInt64: Fault] = [:]
    private var sweptAt = MonotonicTime(nanoseconds: .min)

    /// The most tokens that are remembered. With more of them the fault is hardly the tokens' own,
    /// and each push still has its back-off.
    private static let tokensMax = 1024
    /// As long as the longest back-off: a token that has had no fault for this long has recovered.
    private static let age = Duration.seconds(900)
    /// How much longer than others a token that has failed waits when the pool is probed.
    package static let precedence = Duration.seconds(1)

    package init() {}

    package var isEmpty: Bool { faults.isEmpty }

    /// APNs has answered 5xx to a push, or has left a probe unanswered.
    /// - Parameter accepted: how many pushes the pool has had accepted so far.
    package mutating func faulted(
        _ token: UInt64, accepted: UInt64, backoff: Backoff, now: MonotonicTime,
        random: inout SplitMix64
    ) {
        guard var fault = faults[token] else {
            if faults.count < Self.tokensMax {
                faults[token] = Fault(at: now, accepted: accepted)
            }
            return
        }
        assert(accepted >= fault.accepted, "a pool's count of accepted pushes only grows")
        if accepted > fault.accepted {
            let wait = backoff.delay(attempt: fault.strikes, random: &random)
            fault.heldUntil = max(fault.heldUntil, now + wait)
            fault.strikes += 1
        }
        fault.at = now
        fault.accepted = accepted
        faults[token] = fault
    }

    /// A push to the token was answered by anything but a 5xx.
    package mutating func recovered(_ token: UInt64) { faults.removeValue(forKey: token) }

    /// The pool's breaker has opened: tokens that have failed wait until shortly after its next
    /// probe.
    package mutating func parked(until time: MonotonicTime) {
        for token in faults.keys {
            faults[token]!.heldUntil = max(faults[token]!.heldUntil, time + Self.precedence)
        }
    }

    /// Until when pushes to this token wait; nil where they need not.
    package func held(_ token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        guard let fault = faults[token], fault.heldUntil > now else { return nil }
        return fault.heldUntil
    }

    /// A push to this token is handed over. If the token has a fault of its own, its other pushes
    /// wait for the answer.
    package mutating func handedOver(_ token: UInt64, backoff: Backoff, now: MonotonicTime) {
        guard let fault = faults[token], fault.strikes > 0 else { return }
        faults[token]!.heldUntil = now + backoff.ceiling(attempt: fault.strikes)
    }

    /// Forgets the tokens without a recent fault; it looks at most every 10 s.
    package mutating func sweep(now: MonotonicTime) {
        guard !faults.isEmpty, now - sweptAt >= .seconds(10) else { return }
        sweptAt = now
        faults = faults.filter { now - $0.value.at < Self.age || $0.value.heldUntil > now }
    }
}
