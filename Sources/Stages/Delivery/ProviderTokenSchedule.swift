// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// When the provider token of one (team, key) is renewed. Only the monotonic clock counts, so a
/// step of the wall clock neither expires a token nor renews one early.
package struct ProviderTokenSchedule: Sendable {
    /// 45 min: APNs rejects a token older than 60, and one on its way must not grow that old.
    package static let renewAfter = Duration.seconds(45 * 60)
    /// 20 min: APNs answers 429 `TooManyProviderTokenUpdates` to a connection that shows it a new
    /// token sooner than that.
    package static let intervalMin = Duration.seconds(20 * 60)

    package enum Occasion: Sendable {
        /// A push is about to be sent.
        case use
        /// APNs called the token expired.
        case refusal
    }

    package enum Decision: Hashable, Sendable {
        case mint
        case keep
        /// APNs wants a new token, but it would be the second within `intervalMin`: a clock is
        /// wrong, here or in `iat`, and another token would not help.
        case tooEarly
    }

    private var mintedAt: MonotonicTime?

    package init() {}

    package func decision(for occasion: Occasion, at now: MonotonicTime) -> Decision {
        guard let mintedAt else { return .mint }
        let age = now - mintedAt
        switch occasion {
        case .use: return age >= Self.renewAfter ? .mint : .keep
        case .refusal: return age >= Self.intervalMin ? .mint : .tooEarly
        }
    }

    package mutating func minted(at now: MonotonicTime) {
        mintedAt = now
    }

    /// The key was replaced: its first token is minted on first use, whatever the old one's age.
    /// The 20 minutes hold for a connection, and a new key is never shown on an old one.
    package mutating func keyReplaced() {
        mintedAt = nil
    }
}
