// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Decides when the consumer is closed and opened again within this process, and when that is
/// useless.
package struct ConsumerRestarts: Sendable {
    private var isWanted = false
    private var restartedAt: MonotonicTime?
    /// The latest times at which the group gave this worker's static name to another member.
    private var fencedAt: [MonotonicTime] = []
    private var opensAgainAt: MonotonicTime?

    /// A partition gets no records any more, or could not be started: a restart is wanted.
    mutating func ask() { isWanted = true }

    /// The group knows another member by this worker's `kafka.groupInstanceID`. That happens to a
    /// single worker too, when its group's coordinator was away for a session: the client has
    /// joined twice without having been told of the first time. The library does nothing more with
    /// such a client, and the group admits its successor. Two workers with the same name would take
    /// it from each other for ever.
    ///
    /// - Returns: false where that has happened too often, and this worker must end.
    mutating func fenced(now: Now) -> Bool {
        assert(
            fencedAt.allSatisfy { $0 <= now.monotonic }, "fencings are told in the order of time")
        fencedAt.removeAll { now.monotonic - $0 >= Self.fencingWindow }
        fencedAt.append(now.monotonic)
        guard fencedAt.count < Self.fencingsMax else { return false }
        opensAgainAt = now.monotonic + Self.fencingBackoff * fencedAt.count
        return true
    }

    /// Whether a restart is still to be made.
    var isAwaited: Bool { isWanted || opensAgainAt != nil }

    /// Whether to restart now. An error that a restart does not cure, such as a missing permission,
    /// asks for another one at once; that one has to wait.
    func isDue(now: Now) -> Bool {
        if let opensAgainAt { return opensAgainAt <= now.monotonic }
        guard isWanted else { return false }
        return restartedAt.map { now.monotonic - $0 >= Self.interval } ?? true
    }

    mutating func restarted(now: Now) {
        precondition(isDue(now: now), "the consumer is opened again only when that is due")
        isWanted = false
        opensAgainAt = nil
        restartedAt = now.monotonic
    }

    private static let interval = Duration.seconds(30)
    /// The delay before the consumer is opened again, multiplied by the number of fencings: time
    /// for what the coordinator still has to answer.
    private static let fencingBackoff = Duration.seconds(2)
    /// So many fencings within `fencingWindow` end the worker. A coordinator that is away for a
    /// session causes one; another worker with the same name causes one at every heartbeat.
    package static let fencingsMax = 3
    package static let fencingWindow = Duration.seconds(120)
}
