// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How long the start waits for the topic of restrictions where it alone cannot be read to its end.
///
/// Without it what operators have paused or dropped would be sent; without an end of the wait one
/// topic without a leader would silence every worker that starts.
package struct RestrictionsWait: Sendable {
    private var since: MonotonicTime?
    /// Whether events are read though the restrictions were not, since when nothing has changed.
    package private(set) var isGivenUp = false

    /// As long as a new topic waits for a partition that is away: a broker starts again, and a leader
    /// is elected, in less.
    package static let most = Duration.seconds(60)

    package init() {}

    /// What a look at the tables has found.
    ///
    /// - Returns: whether events may be read.
    package mutating func mayBegin(
        hasOthers: Bool, hasRestrictions: Bool, now: MonotonicTime
    ) -> Bool {
        if hasRestrictions {
            isGivenUp = false
            return hasOthers
        }
        guard hasOthers else { return false }
        let begun = since ?? now
        since = begun
        if now - begun >= Self.most { isGivenUp = true }
        return isGivenUp
    }
}
