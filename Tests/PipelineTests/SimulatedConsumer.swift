// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle

/// The consumer of one worker, with the contract of `EventConsumer`: the partitions that the group
/// has assigned to it, and which of them it reads at the moment. A pause ends with its assignment.
struct SimulatedConsumer {
    /// A partition that the group gives to its members, by its position in `SimulatedKafka`.
    enum Place: Hashable {
        case events(Int)
        case deferred(Int)
    }

    struct Row {
        let place: Place
        let id: AssignmentID
        var isPaused = false
        /// Whether the group is taking the partition back, so that none of its records is
        /// delivered.
        var isMuted = false
        /// Whether librdkafka has stopped fetching the partition, so that nothing comes of it
        /// before a restart.
        var isStalled = false
        /// Whether its records are left in Kafka, since its topic waits.
        var isHeld = false
    }

    struct Revoke {
        let ids: [AssignmentID]
        let since: MonotonicTime
    }

    private(set) var rows: [Row] = []
    /// The revocation that the group waits for.
    private(set) var revoke: Revoke?
    /// Whether another member has taken this one's static name, so that nothing is read, stored or
    /// assigned before a restart.
    var isFenced = false
    private var lastEpoch: UInt32 = 0

    func id(of place: Place) -> AssignmentID? { rows.first { $0.place == place }?.id }

    func isRead(_ place: Place) -> Bool {
        guard !isFenced, let row = rows.first(where: { $0.place == place }) else { return false }
        return !row.isPaused && !row.isMuted && !row.isStalled && !row.isHeld
    }

    mutating func assign(_ place: Place, ordinal: Int) -> AssignmentID {
        precondition(id(of: place) == nil, "assigned twice")
        lastEpoch += 1
        let id = AssignmentID(ordinal: UInt32(ordinal), epoch: lastEpoch)
        rows.append(Row(place: place, id: id))
        return id
    }

    mutating func setPaused(_ isPaused: Bool, _ topics: PausedTopics) {
        for index in rows.indices where topics.include(rows[index].place) {
            // A row that the group wants back is not paused any more; if it was, it is resumed.
            if isPaused && rows[index].isMuted { continue }
            rows[index].isPaused = isPaused
        }
    }

    mutating func setHeld(_ isHeld: Bool, _ place: Place) {
        for index in rows.indices where rows[index].place == place { rows[index].isHeld = isHeld }
    }

    mutating func stall(_ place: Place) {
        for index in rows.indices where rows[index].place == place { rows[index].isStalled = true }
    }

    mutating func beginRevoke(_ ids: [AssignmentID], now: MonotonicTime) {
        precondition(revoke == nil, "the group waits for one answer at a time")
        revoke = Revoke(ids: ids, since: now)
        for index in rows.indices where ids.contains(rows[index].id) { rows[index].isMuted = true }
    }

    /// Returns what is given back.
    mutating func completeRevoke() -> [Place] {
        let ids = revoke?.ids ?? []
        revoke = nil
        return remove(ids).map(\.place)
    }

    /// A loss makes the answer to a revoke pointless.
    mutating func lose(_ ids: [AssignmentID]) -> [Row] {
        if revoke?.ids.contains(where: ids.contains) == true { revoke = nil }
        return remove(ids)
    }

    private mutating func remove(_ ids: [AssignmentID]) -> [Row] {
        let removed = rows.filter { ids.contains($0.id) }
        rows.removeAll { ids.contains($0.id) }
        return removed
    }
}

extension PausedTopics {
    func include(_ place: SimulatedConsumer.Place) -> Bool {
        switch (self, place) {
        case (.all, _), (.events, .events): true
        case (.events, .deferred): false
        }
    }
}
