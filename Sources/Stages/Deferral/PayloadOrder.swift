// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import Planning
package import PushModel

/// What is known of keys (a token and a collapse ID) whose payloads have left the push table: the
/// newest payload that this worker has put in `deferred`, and the newest that APNs has accepted
/// since. An older payload must not be sent after a newer one.
///
/// A key is added when a payload of it is deferred, so this is usually empty. The owner adds
/// accepted payloads only while older ones may still come: while a partition of `deferred` is
/// replayed, or an event with a payload is being fanned out. Memory is bounded: the key that
/// was least recently added or renewed makes room.
package struct PayloadOrder: ~Copyable {
    private var rows: [Row] = []
    private var free: [UInt32] = []
    private var index = IndexTable(reservedSlots: 1 << 24)
    private var oldest = none
    private var newest = none
    private let rowsMax: Int
    private let keyHash: KeyHash
    /// How many keys had to make room while their payload could still be sent late.
    package private(set) var forgotten = 0

    private static let none: UInt32 = 0
    /// The row's owner reads the expiry by another clock, or by one that has been set meanwhile.
    private static let clockSlack = Duration.seconds(60)

    private struct Row {
        var hash: UInt64
        /// The newest payload that this worker has put in `deferred`.
        var deferred: BodyAge?
        var accepted: BodyAge?
        /// The newest accepted payload that this worker read itself.
        var acceptedHere: BodyAge?
        var forgetAt: MonotonicTime
        var next = none
        var previous = none
    }

    /// Memory for one key in bytes, with its entries in the list of free rows and in the index.
    package static var bytesPerKey: Int {
        MemoryLayout<Row>.stride + MemoryLayout<UInt32>.stride + 10
    }

    package init(bytesMax: Int, seed: UInt64 = 0) {
        keyHash = KeyHash(seed: seed)
        rowsMax = max(1, bytesMax / Self.bytesPerKey)
        rows.append(Row(hash: 0, forgetAt: .distantFuture))
    }

    package var isEmpty: Bool { oldest == Self.none }
    package var count: Int { rows.count - 1 - free.count }
    package var bytes: Int { count * Self.bytesPerKey }

    /// The seeded hash of a token and a collapse ID, by which the other methods know them.
    package func hash(
        _ route: RouteID, _ token: UnsafeRawBufferPointer, _ coalescingKey: UInt64
    ) -> UInt64 {
        keyHash.hash(route, token, coalescingKey)
    }

    // MARK: Facts

    /// A payload was written to `deferred`, to be sent until `expiresAt` by whoever owns its row.
    package mutating func deferred(
        _ hash: UInt64, age: BodyAge, expiresAt: MonotonicTime, now: MonotonicTime
    ) {
        let row = Int(touch(hash, until: expiresAt + Self.clockSlack, now: now))
        rows[row].deferred = max(age, rows[row].deferred ?? age)
        // An older payload, whose acceptance a faster clock has dated later, must not end this one.
        if let accepted = rows[row].accepted, accepted < age, accepted.readAt >= age.readAt {
            rows[row].accepted = nil
        }
    }

    /// APNs has accepted a payload of this key.
    /// - Parameter keptUntil: until when the key is remembered; nil where no older payload can come
    ///   except those of keys that are known already.
    /// - Returns: whether it supersedes a payload that this worker has deferred, which must be
    ///   ended.
    package mutating func accepted(
        _ hash: UInt64, age: BodyAge, keptUntil: MonotonicTime?, now: MonotonicTime
    ) -> Bool {
        if let keptUntil { _ = touch(hash, until: keptUntil, now: now) }
        guard let row = find(hash) else { return false }
        rows[Int(row)].accepted = max(age, rows[Int(row)].accepted ?? age)
        if !age.isElsewhere {
            rows[Int(row)].acceptedHere = max(age, rows[Int(row)].acceptedHere ?? age)
        }
        guard let deferred = rows[Int(row)].deferred, deferred <= age else { return false }
        rows[Int(row)].deferred = nil
        return true
    }

    // MARK: Questions

    /// Whether a payload that this worker read is older than an accepted one that it read too.
    /// Payloads that other workers read do not count: only clocks could compare them, and a payload
    /// that is dropped because a clock is fast is lost.
    package func isOutdated(_ hash: UInt64, age: BodyAge) -> Bool {
        guard let row = find(hash), let accepted = rows[Int(row)].acceptedHere else { return false }
        return accepted > age
    }

    /// Whether a payload from `deferred` is older than one that was accepted. Of two with the same
    /// time the deferred one is the older, unless this worker knows better.
    package func isSuperseded(_ hash: UInt64, age: BodyAge) -> Bool {
        guard let row = find(hash), let accepted = rows[Int(row)].accepted else { return false }
        return isOlder(age, than: accepted, hash)
    }

    /// Whether a payload from `deferred` is older than this one, which was accepted.
    package func isOlder(_ age: BodyAge, than accepted: BodyAge, _ hash: UInt64) -> Bool {
        if age.readAt != accepted.readAt { return age < accepted }
        let deferred = find(hash).flatMap { rows[Int($0)].deferred }
        return deferred.map { $0 <= accepted } ?? true
    }

    // MARK: Rows

    /// Forgets keys whose payloads have expired, oldest first, up to the first that has not.
    package mutating func forget(now: MonotonicTime) {
        while oldest != Self.none, rows[Int(oldest)].forgetAt <= now { remove(oldest) }
    }

    private func find(_ hash: UInt64) -> UInt32? {
        oldest == Self.none ? nil : index.row(hash: hash) { rows[Int($0)].hash == hash }
    }

    /// The key's row, found or made; it is the last to make room from now on.
    private mutating func touch(
        _ hash: UInt64, until time: MonotonicTime, now: MonotonicTime
    ) -> UInt32 {
        forget(now: now)
        if let row = find(hash) {
            unlink(row)
            rows[Int(row)].forgetAt = max(time, rows[Int(row)].forgetAt)
            link(row)
            return row
        }
        if count >= rowsMax {
            forgotten += 1
            remove(oldest)
        }
        let row: UInt32
        if let reused = free.popLast() {
            row = reused
            rows[Int(row)] = Row(hash: hash, forgetAt: time)
        } else {
            row = UInt32(rows.count)
            rows.append(Row(hash: hash, forgetAt: time))
        }
        index.insert(hash: hash, row: row)
        link(row)
        return row
    }

    private mutating func remove(_ row: UInt32) {
        index.remove(hash: rows[Int(row)].hash, row: row)
        unlink(row)
        free.append(row)
    }

    private mutating func link(_ row: UInt32) {
        rows[Int(row)].previous = newest
        rows[Int(row)].next = Self.none
        if newest == Self.none { oldest = row } else { rows[Int(newest)].next = row }
        newest = row
    }

    private mutating func unlink(_ row: UInt32) {
        let (previous, next) = (rows[Int(row)].previous, rows[Int(row)].next)
        if previous == Self.none { oldest = next } else { rows[Int(previous)].next = next }
        if next == Self.none { newest = previous } else { rows[Int(next)].previous = previous }
    }
}

extension PayloadOrder {
    package func checkInvariants() {
        var listed = 0
        var row = oldest
        while row != Self.none {
            precondition(find(rows[Int(row)].hash) == row, "a listed key is found in the index")
            listed += 1
            row = rows[Int(row)].next
        }
        precondition(
            listed == count && index.count == count, "the list and the index have each key once")
        precondition(count <= rowsMax, "there are at most rowsMax keys")
        index.checkInvariants()
    }
}
