// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// To which tokens of an app this fleet sends, while another sender serves the others.
///
/// Each token has a number from 0 to 99 by its SHA-256, which both senders can tell: the first 4 bytes,
/// as a big-endian number, modulo 100. A percentage has those whose number is below it, so that a
/// higher one has all of a lower one.
package struct Rollout: Sendable, Hashable {
    /// Of events that are written at `from` or later.
    package var percent: Int
    /// Of events that were written before.
    package var percentBefore: Int
    package var from: WallTime
    /// Tokens that are sent to whatever the percentages are, by the first 8 bytes of their SHA-256.
    package var tokens: [UInt64]

    package init(
        percent: Int, percentBefore: Int, from: WallTime, tokens: [UInt64] = []
    ) {
        self.percent = percent
        self.percentBefore = percentBefore
        self.from = from
        self.tokens = tokens
    }

    /// The number of a token, from 0 to 99.
    /// - Parameter hash: the first 8 bytes of the token's SHA-256, big-endian.
    package static func number(_ hash: UInt64) -> Int { Int((hash >> 32) % 100) }

    /// Whether a token is sent to.
    ///
    /// - Parameters:
    ///   - writtenAt: when the event was written, by its record; nil if that is not known, or for several
    ///     events together. Then either percentage will do: two senders of one push do less harm than none.
    package func includes(_ hash: UInt64, writtenAt: WallTime?) -> Bool {
        let number = Self.number(hash)
        let limit =
            if let writtenAt { writtenAt >= from ? percent : percentBefore } else {
                max(percent, percentBefore)
            }
        return number < limit || tokens.contains(hash)
    }
}
