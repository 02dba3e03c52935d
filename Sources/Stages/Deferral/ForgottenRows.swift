// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Rows of `deferred` that are not in memory, since there was no room for them: Kafka keeps their
/// records. Of each partition and route the lowest offset is known from which its records must be
/// read again.
///
/// While a partition and route is listed here, no row is made of a record of its keys: the records
/// of a key are read again all or not at all. A row that stayed in memory goes on as before.
package struct ForgottenRows: Sendable {
    private struct Place: Hashable {
        /// The epoch of the partition's assignment.
        let epoch: UInt32
        let route: RouteID
    }

    private struct Entry {
        var first: Int64
        var records: Int
        /// Whether a reading is under way, of which rows are made.
        var isReread = false
        /// What that reading has found no room for.
        var left: (first: Int64, records: Int)?
    }

    private var entries: [Place: Entry] = [:]
    /// About how many records wait in Kafka; a key may have several.
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    package func contains(_ id: AssignmentID, _ route: RouteID) -> Bool {
        entries[Place(epoch: id.epoch, route: route)] != nil
    }

    /// The routes of this partition that have forgotten rows.
    package func routes(of id: AssignmentID) -> [RouteID] {
        entries.keys.filter { $0.epoch == id.epoch }.map(\.route)
            .sorted { $0.rawValue < $1.rawValue }
    }

    /// From which offset the rows of this partition and route must be read again; nil if none were
    /// forgotten.
    package func first(of id: AssignmentID, _ route: RouteID) -> Int64? {
        entries[Place(epoch: id.epoch, route: route)]?.first
    }

    /// A row whose first record stands at this offset is not in memory any more, or was never made.
    package mutating func forget(_ id: AssignmentID, _ route: RouteID, offset: Int64) {
        let place = Place(epoch: id.epoch, route: route)
        guard var entry = entries[place] else {
            entries[place] = Entry(first: offset, records: 1)
            count += 1
            return
        }
        entry.first = min(offset, entry.first)
        if entry.isReread {
            let left = entry.left ?? (first: offset, records: 0)
            entry.left = (first: min(offset, left.first), records: left.records + 1)
        } else {
            entry.records += 1
            count += 1
        }
        entries[place] = entry
    }

    /// The partition is no longer ours.
    package mutating func close(_ id: AssignmentID) {
        for place in entries.keys where place.epoch == id.epoch { remove(place) }
    }

    // MARK: Reading again

    /// The rows of this partition and route are about to be read again.
    package mutating func beginReading(_ id: AssignmentID, _ route: RouteID) {
        let place = Place(epoch: id.epoch, route: route)
        entries[place]!.isReread = true
        entries[place]!.left = nil
    }

    /// Whether a record at this offset is to be read again.
    package func isReread(_ id: AssignmentID, _ route: RouteID, at offset: Int64) -> Bool {
        entries[Place(epoch: id.epoch, route: route)].map { $0.isReread && $0.first <= offset }
            ?? false
    }

    /// Whether the reading may make rows of further keys: not behind one that found no room, whose
    /// later records would be taken for all that there is of it.
    package func makesRows(_ id: AssignmentID, _ route: RouteID) -> Bool {
        entries[Place(epoch: id.epoch, route: route)].map { $0.isReread && $0.left == nil }
            ?? false
    }

    /// Everything was read again as far as the partition has been read.
    package mutating func endReading(_ id: AssignmentID, _ route: RouteID) {
        let place = Place(epoch: id.epoch, route: route)
        guard let left = entries[place]!.left else { return remove(place) }
        count += left.records - entries[place]!.records
        entries[place] = Entry(first: left.first, records: left.records)
    }

    /// The reading is given up; what it has made is gone.
    package mutating func giveUpReading(_ id: AssignmentID, _ route: RouteID) {
        let place = Place(epoch: id.epoch, route: route)
        entries[place]!.isReread = false
        entries[place]!.left = nil
    }

    private mutating func remove(_ place: Place) {
        if let entry = entries.removeValue(forKey: place) { count -= entry.records }
    }

    package func checkInvariants() {
        precondition(
            entries.values.reduce(0) { $0 + $1.records } == count,
            "the count of records is that of all entries")
        for entry in entries.values {
            precondition(
                entry.left.map { entry.isReread && $0.first >= entry.first } ?? true,
                "what a reading has left lies in what is read again, not before it")
        }
    }
}
