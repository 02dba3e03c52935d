// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides when the provider token of one (team, key) is renewed. Its age is the greater of two: by
/// the monotonic clock, which also counts while the machine sleeps, and by the wall clock, which is
/// what APNs compares `iat` with.
package struct ProviderTokenSchedule: Sendable {
    /// 45 min: APNs rejects a token older than 60, and one on its way must not grow that old.
    package static let renewAfter = Duration.seconds(45 * 60)
    /// 20 min: APNs answers 429 `TooManyProviderTokenUpdates` to a connection that shows it a new
    /// token sooner than that.
    package static let intervalMin = Duration.seconds(20 * 60)
    /// A wall clock that is set by no more than this was not wrong. A token is also used for at
    /// least this long, however the wall clock jumps.
    package static let clockSlack = Duration.seconds(60)

    package enum Occasion: Sendable {
        /// A push is about to be sent.
        case use
        /// APNs called the token expired.
        case refusal
    }

    package enum Decision: Hashable, Sendable {
        case mint
        case keep
        /// APNs wants a new token, but it would be the second within `intervalMin`, with much the
        /// same `iat`: this machine's clock is wrong. `age` is by the monotonic clock.
        case tooEarly(age: Duration)
    }

    private var mintedAt: Now?

    package init() {}

    package func decision(for occasion: Occasion, at now: Now) -> Decision {
        guard let mintedAt else { return .mint }
        let age = now.monotonic - mintedAt.monotonic
        let wallAge = now.wall - mintedAt.wall
        switch occasion {
        case .use:
            if age >= Self.renewAfter { return .mint }
            // The wall clock was set since: `iat` is too old by now, or lies in the future.
            let isMisdated = wallAge >= Self.renewAfter || wallAge < .zero - Self.clockSlack
            return isMisdated && age >= Self.clockSlack ? .mint : .keep
        case .refusal:
            if max(age, wallAge) >= Self.intervalMin { return .mint }
            let wasSet = wallAge > age + Self.clockSlack || wallAge < age - Self.clockSlack
            return wasSet ? .mint : .tooEarly(age: age)
        }
    }

    /// The age of the token by the monotonic clock; nil before the first one.
    package func age(at now: Now) -> Duration? { mintedAt.map { now.monotonic - $0.monotonic } }

    package mutating func minted(at now: Now) {
        precondition(
            mintedAt.map { now.monotonic >= $0.monotonic } ?? true,
            "a token is minted no earlier than the one before")
        mintedAt = now
    }
}

/// The provider tokens that a connection has been shown. APNs ties a connection to the key it sees
/// first, and wants 20 minutes between two tokens.
package struct ShownProviderTokens: Hashable, Sendable {
    private struct Shown: Hashable {
        let key: Int
        let first: Int
        var latest: Int
        var at: MonotonicTime
    }

    private var shown: Shown?

    /// The shortest time between two tokens on a connection. APNs counts from when it sees a token,
    /// which is a little after it was sent.
    private static let updateMin = ProviderTokenSchedule.intervalMin + .seconds(60)

    package init() {}

    /// The key that has signed the tokens.
    package var key: Int? { shown?.key }

    /// Whether the connection may be shown this token; if not, another connection must be used.
    package func allow(key: Int, generation: Int, at now: MonotonicTime) -> Bool {
        guard let shown else { return true }
        guard shown.key == key else { return false }
        return shown.latest == generation || now - shown.at >= Self.updateMin
    }

    package mutating func show(key: Int, generation: Int, at now: MonotonicTime) {
        guard shown != nil else {
            shown = Shown(key: key, first: generation, latest: generation, at: now)
            return
        }
        guard shown!.latest != generation else { return }
        precondition(
            shown!.key == key && generation > shown!.latest,
            "a connection is shown the tokens of one key, in their order")
        shown!.latest = generation
        shown!.at = now
    }

    /// Whether the connection has been shown this token and none before it, so that what APNs says
    /// of it cannot be about an earlier one.
    package func areOnly(key: Int, generation: Int) -> Bool {
        shown.map { $0.key == key && $0.first == generation } ?? true
    }
}
