// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Room in `deferred`: how much Kafka may have to acknowledge. It is shared out by partition, so that
/// one that has no leader leaves the others theirs.
extension DeferredPushes {
    /// How long what finds no room in its partition is not looked at again.
    static var roomRetry: Duration { .seconds(1) }

    /// Whether some push may be deferred. Each row whose push is under way keeps room for its
    /// tombstone.
    func hasRoom(_ state: borrowing PipelineState) -> Bool {
        ends.isEmpty
            && state.outbox.tickets.shares.hasRoom(beside: reserved(state), state.settings.sizes)
    }

    func hasRoomForTombstones(
        _ state: borrowing PipelineState
    ) -> Bool {
        state.outbox.tickets.shares.hasRoom(
            beside: state.tracker.endedRows.count, state.settings.sizes)
    }

    /// The records that rows will cause whose pushes are under way, or have just ended.
    func reserved(_ state: borrowing PipelineState) -> Int {
        state.tracker.endedRows.count + table.takenCount
    }

    // MARK: Pushes

    /// The key of the push's record.
    func key(ofPush slot: UInt32, _ state: borrowing PipelineState) -> [UInt8] {
        let push = state.pushes[slot]
        return state.audience.tokenBytes(of: push.token)
            .withMemoryRebound(to: UInt8.self) { token in
                RecordKey.deferred(
                    route: state.routing[push.route], token: token,
                    coalescingKey: push.coalescingKey)
            }
    }

    /// Whether this push may be deferred now. One that holds no event's offset came from a row, which
    /// takes it back without a record.
    func hasRoom(
        for slot: UInt32, key: [UInt8], _ state: borrowing PipelineState
    ) -> Bool {
        guard state.pushes.heldSince(of: slot) < .distantFuture else { return true }
        let shares = state.outbox.tickets.shares
        return shares.hasRoom(
            in: shares.partition(ofKey: key), beside: reserved(state), state.settings.sizes)
    }

    /// Whether a push may be deferred that could also be sent now: its partition has room, and Kafka
    /// acknowledges what it is given.
    func isWorthDeferring(
        _ slot: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        guard hasRoom(state) else { return false }
        guard state.pushes.heldSince(of: slot) < .distantFuture else { return true }
        let shares = state.outbox.tickets.shares
        let partition = shares.partition(ofKey: key(ofPush: slot, state))
        return shares.hasRoom(in: partition, beside: reserved(state), state.settings.sizes)
            && !shares.isUnanswered(partition, now: now.monotonic)
    }

    /// Whether a push whose gap is kept in `deferred` is sent without it. A gap is a courtesy, and
    /// worth no outage: that is so where Kafka has not acknowledged its partition's records for some
    /// seconds, where the push has waited for room as long as it may hold its event, and where too
    /// many wait for room. Those of a large audience may fill the slots that fan-outs may take.
    func goesWithoutGap(
        _ slot: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        let held = state.pushes.heldSince(of: slot)
        guard held < .distantFuture else { return false }
        if held <= now.monotonic - HoldWatch.patience(state.settings.sizes.holdMax) { return true }
        // In each interval half a sixteenth may begin to rest, for as long as an interval.
        if !state.pushes[slot].content.isBulk,
            roomWaits.count(now: now.monotonic) >= max(1, state.settings.sizes.slots / 32)
        {
            return true
        }
        let shares = state.outbox.tickets.shares
        return shares.isUnanswered(
            shares.partition(ofKey: key(ofPush: slot, state)), now: now.monotonic)
    }

    // MARK: Rows

    /// Whether what the row's push will cause to be written has room in its partition.
    /// - Parameter announces: whether the push must be announced, and waits for Kafka to have that.
    ///   Announcements in one partition leave those in the others their room.
    func hasRoom(
        forRow row: UInt32, announces: Bool, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        let shares = state.outbox.tickets.shares
        let partition = Int(table.partition(of: row)) % shares.count
        guard shares.hasRoom(in: partition, beside: reserved(state), state.settings.sizes) else {
            return false
        }
        guard announces, shares.count > 1 else { return true }
        return !shares.isUnanswered(partition, now: now.monotonic)
            && shares.announcements(in: partition) * shares.count
                < max(shares.count, state.settings.sizes.deferredSlots)
    }
}

/// How many pushes have begun to rest for want of room in `deferred` in this interval.
struct RoomWaits {
    private var interval: Int64 = 0
    private var added = 0

    /// How long a push rests, and an interval lasts.
    static let retryAfter = Duration.milliseconds(250)

    mutating func add(now: MonotonicTime) {
        added = count(now: now) + 1
        interval = Self.interval(now)
    }

    func count(now: MonotonicTime) -> Int { Self.interval(now) == interval ? added : 0 }

    private static func interval(_ now: MonotonicTime) -> Int64 {
        now.nanoseconds / 1_000_000 / Int64(retryAfter / .milliseconds(1))
    }
}
