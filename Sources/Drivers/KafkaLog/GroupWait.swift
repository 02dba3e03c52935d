// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Since when a member waits for its group to say which partitions are its own: from the start, or
/// from the beginning of a rebalance that takes all of them, until the next assignment, which may be
/// empty. A member that waits reads nothing.
struct GroupWait {
    private var isAnswered = false
    private var since: MonotonicTime?

    /// The consumer is polled.
    mutating func polled(now: MonotonicTime) {
        if !isAnswered, since == nil { since = now }
    }

    /// The group takes back everything.
    mutating func revoked(now: MonotonicTime) {
        // A wait that goes on is not a new one.
        guard isAnswered else { return }
        isAnswered = false
        since = now
    }

    /// The group has assigned partitions, or none.
    mutating func assigned() {
        isAnswered = true
        since = nil
    }

    /// How long the member has waited; nil if it does not.
    func lasted(now: MonotonicTime) -> Duration? { since.map { now - $0 } }
}
