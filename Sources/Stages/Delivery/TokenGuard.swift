// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides whether a route's complaints about tokens may be believed. When a deploy goes to the
/// wrong host, or a suffix or key is wrong, APNs calls *every* token bad; believing it would empty
/// the token table.
///
/// A 400 about a token is believed only if the route's last `window` answers are complete, at most
/// `badShareMax` of them were such 400s, and one was an acceptance less than `freshness` ago. A
/// route with little traffic therefore never suppresses a token on a 400; it goes on sending to its
/// bad tokens. A 410 is believed as long as there are at most `suppressionsPerMinuteMax` of them.
package struct TokenGuard: Sendable {
    package struct Limits: Sendable, Equatable {
        package var window = 200
        package var badShareMax = 0.05
        package var freshness = Duration.seconds(600)
        package var suppressionsPerMinuteMax = 1000

        package init() {}
    }

    private let limits: Limits
    /// The last answers, true for a 400 about the token; a ring once it is full.
    private var answers: [Bool] = []
    private var position = 0
    private var bad = 0
    private var acceptedAt: MonotonicTime?
    private var minuteStart = MonotonicTime(nanoseconds: 0)
    private var suppressionsThisMinute = 0

    package init(limits: Limits) { self.limits = limits }

    package mutating func accepted(now: MonotonicTime) {
        acceptedAt = now
        record(bad: false)
    }

    /// APNs called a token bad. Returns whether to believe it.
    package mutating func tokenRejected(now: MonotonicTime) -> Bool {
        record(bad: true)
        guard answers.count == limits.window, let acceptedAt else { return false }
        return now - acceptedAt <= limits.freshness
            && Double(bad) <= limits.badShareMax * Double(limits.window)
            && maySuppress(now: now)
    }

    /// APNs called a token dead. Returns whether to believe it.
    package mutating func tokenDied(now: MonotonicTime) -> Bool { maySuppress(now: now) }

    private mutating func maySuppress(now: MonotonicTime) -> Bool {
        if now - minuteStart >= .seconds(60) {
            minuteStart = now
            suppressionsThisMinute = 0
        }
        guard suppressionsThisMinute < limits.suppressionsPerMinuteMax else { return false }
        suppressionsThisMinute += 1
        return true
    }

    private mutating func record(bad isBad: Bool) {
        // A full ring of good answers need not be updated.
        if !isBad, bad == 0, answers.count == limits.window { return }
        if answers.count < limits.window {
            answers.append(isBad)
        } else {
            if answers[position] { bad -= 1 }
            answers[position] = isBad
            position = position + 1 == limits.window ? 0 : position + 1
        }
        if isBad { bad += 1 }
    }
}
