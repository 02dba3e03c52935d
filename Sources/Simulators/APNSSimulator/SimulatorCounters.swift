// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// What a simulator has done since it was started.
package struct SimulatorCounts: Hashable, Sendable {
    /// Answers with status 200 to pushes and broadcasts.
    package var accepted = 0
    /// Answers with any other status to them.
    package var rejected = 0
    /// Requests that were read and left without an answer: stalled, silenced or reset.
    package var unanswered = 0
    /// Streams refused with REFUSED_STREAM.
    package var streamsRefused = 0
    /// Requests that have begun and whose streams have not ended yet.
    package var requestsOpen = 0
    package var connectionsOpened = 0
    package var connectionsOpen = 0
    /// Connections closed because `connectionsMax` were open.
    package var connectionsTurnedAway = 0
    /// Pushes to new device tokens when `deviceTokensMax` were known.
    package var tokensUnremembered = 0
}

/// The counts of all threads. Each addition is atomic; a thread adds the counts of requests in
/// batches.
final class SimulatorCounters: Sendable {
    private let accepted = Atomic<Int>(0)
    private let rejected = Atomic<Int>(0)
    private let unanswered = Atomic<Int>(0)
    private let streamsRefused = Atomic<Int>(0)
    private let requestsOpen = Atomic<Int>(0)
    private let connectionsOpened = Atomic<Int>(0)
    private let connectionsOpen = Atomic<Int>(0)
    private let connectionsTurnedAway = Atomic<Int>(0)
    private let tokensUnremembered = Atomic<Int>(0)

    func add(_ counts: SimulatorCounts) {
        accepted.add(counts.accepted, ordering: .relaxed)
        rejected.add(counts.rejected, ordering: .relaxed)
        unanswered.add(counts.unanswered, ordering: .relaxed)
        streamsRefused.add(counts.streamsRefused, ordering: .relaxed)
        requestsOpen.add(counts.requestsOpen, ordering: .relaxed)
        tokensUnremembered.add(counts.tokensUnremembered, ordering: .relaxed)
    }

    /// Counts a connection and returns its number, from 1; nil if `connectionsMax` are open.
    func connectionAccepted(connectionsMax: Int) -> Int? {
        guard connectionsOpen.add(1, ordering: .relaxed).newValue <= connectionsMax else {
            connectionsOpen.subtract(1, ordering: .relaxed)
            connectionsTurnedAway.add(1, ordering: .relaxed)
            return nil
        }
        return connectionsOpened.add(1, ordering: .relaxed).newValue
    }

    func connectionClosed() {
        let left = connectionsOpen.subtract(1, ordering: .relaxed).newValue
        precondition(left >= 0, "no more connections are closed than were opened")
    }

    var counts: SimulatorCounts {
        SimulatorCounts(
            accepted: accepted.load(ordering: .relaxed),
            rejected: rejected.load(ordering: .relaxed),
            unanswered: unanswered.load(ordering: .relaxed),
            streamsRefused: streamsRefused.load(ordering: .relaxed),
            requestsOpen: requestsOpen.load(ordering: .relaxed),
            connectionsOpened: connectionsOpened.load(ordering: .relaxed),
            connectionsOpen: connectionsOpen.load(ordering: .relaxed),
            connectionsTurnedAway: connectionsTurnedAway.load(ordering: .relaxed),
            tokensUnremembered: tokensUnremembered.load(ordering: .relaxed))
    }
}
