// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// To which tokens of some classes of an app this fleet sends, while another sender serves the others.
///
/// Each token has a number from 0 to 99 by its SHA-256, which both senders can tell: the first 4 bytes,
/// as a big-endian number, modulo 100. A percentage has those whose number is below it, so that a
/// higher one has all of a lower one.
package struct Rollout: Sendable, Hashable {
    /// From one time on, so many of a hundred tokens are sent to.
    package struct Step: Sendable, Hashable {
        package var percent: Int
        /// The first events for which it is in force, by the timestamps of their records.
        package var from: WallTime

        package init(percent: Int, from: WallTime) {
            self.percent = percent
            self.from = from
        }
    }

    /// The latest ones, oldest first, at least one. The first counts for all events of before, too.
    package var steps: [Step]
    /// The classes of tokens that another sender has as well.
    package var classes: TokenClassSet
    /// Tokens that are sent to whatever the percentages are, by the first 8 bytes of their SHA-256.
    package var tokens: [UInt64]

    package init(_ steps: [Step], of classes: TokenClassSet, tokens: [UInt64] = []) {
        precondition(!steps.isEmpty, "a rollout has at least one step")
        self.steps = steps
        self.classes = classes
        self.tokens = tokens
    }

    package static let stepsMax = 16

    /// The number of a token, from 0 to 99.
    /// - Parameter hash: the first 8 bytes of the token's SHA-256, big-endian.
    package static func number(_ hash: UInt64) -> Int { Int((hash >> 32) % 100) }

    /// The percentage for events of this time.
    package func percent(at time: WallTime) -> Int {
        (steps.last { $0.from <= time } ?? steps[0]).percent
    }

    /// Whether a token is sent to, for an event that was written at some time of these. Where steps fall
    /// between them the highest counts: two senders of one push do less harm than none.
    package func includes(_ hash: UInt64, writtenIn times: ClosedRange<WallTime>) -> Bool {
        let number = Self.number(hash)
        if number < percent(at: times.lowerBound) { return true }
        return steps.contains { times.contains($0.from) && number < $0.percent }
            || tokens.contains(hash)
    }

    /// What is in force at this time, and what comes.
    package func text(at time: WallTime) -> String {
        "\(percent(at: time)) %"
            + steps.filter { $0.from > time }
            .map { ", \($0.percent) % from \($0.from.rfc3339) on" }.joined()
    }
}
