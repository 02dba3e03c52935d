// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel

/// A pool's health, where each answer concerns another token.
struct AnswersOfMany {
    private var health = PoolHealth()
    private var token: UInt32 = 0

    mutating func received(_ answer: PoolHealth.Answer) -> Bool {
        token += 1
        return health.received(answer, of: TokenID(rawValue: token), now: .after(.zero))
    }

    mutating func isSilent(inFlight: Int, now: MonotonicTime) -> Bool {
        health.isSilent(inFlight: inFlight, now: now)
    }

    mutating func reset() { health.reset() }
}
