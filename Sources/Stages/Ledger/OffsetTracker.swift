// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Says which offset of each partition may be stored: what an offset *means* is defined here.
///
/// An event whose effects have not all ended is a *holder*: its offset, and the number of claims on
/// it. Holders of one assignment stand in a list in offset order; one whose last claim is given
/// back leaves the list. The **committable offset** is the oldest of
/// - the oldest holder's offset,
/// - the oldest offset read less than `registrationGrace` ago (a registration that arrives within
///   that time is still owed a push for it), and
/// - the offset after the last one read.
///
/// Storing the committable offset is safe at any instant: every offset below it has ended. Memory
/// is bounded by the number of claims, not by the number of events.
///
/// The **ended offset** leaves out the grace period: every event below it has ended for each token
/// that the worker knows. It is what a partition that is given up waits for, and what the next
/// owner is told (`CommitNote` in the pipeline).
///
/// A partition that is replayed as a table is opened too, but its offsets are never stored: each of
/// its holders is one row of the table, and `endedRows` names those whose last claim has been given
/// back.
///
/// The state of an assignment is found by two array look-ups. It outlives the assignment while
/// claims on it are out, but only these claims can still reach it.
package struct OffsetTracker: ~Copyable {
    /// Rows of open tables whose last claim was given back, in that order. The owner of the table
    /// must take them before it makes another row.
    package private(set) var endedRows: [OffsetClaim] = []

    private var holders = Column<Holder>(capacity: Self.holdersMax)
    private var holderRows = FreeList(first: 0, capacity: Self.holdersMax)
    private var assignments = Column<Assignment>(capacity: Self.assignmentsMax)
    /// The grace window of each assignment, at the same index as in `assignments`.
    private var graceWindows: [GraceWindow] = []
    /// Indices of `assignments` that are free to be used again.
    private var freePlaces: [UInt32] = []
    /// The index in `assignments` of each ordinal, or `none` where the assignment is over.
    private var places = Column<UInt32>(capacity: Self.assignmentsMax)
    private let registrationGrace: Duration
    private let byAddress = PassedByAddress()

    private static let none = UInt32.max
    /// The most holders at once; the claims on so many would fill any machine.
    private static let holdersMax = 1 << 30
    private static let assignmentsMax = 1 << 20

    private struct Holder: BitwiseCopyable {
        var offset: Int64
        /// When its record was read; meaningless for a table's row.
        var readAt: MonotonicTime
        /// Claims on this offset; zero only while the row is free.
        var claims: UInt32
        /// The index of its assignment in `assignments`.
        var place: UInt32
        var next: UInt32
        var previous: UInt32
        var kind: List
        /// Of holders of one offset, that of the lower part holds more.
        var part: UInt16 = 0
    }

    /// An assignment has two lists, each in offset order because each is appended to in that order:
    /// `events` for records and, in any order, for rows of tables, and `pins` for events that are past. A pin
    /// holds the oldest offset within its grace period for a token that registered after the event.
    private enum List: UInt8, BitwiseCopyable { case events, pins }

    private struct Assignment: BitwiseCopyable {
        let id: AssignmentID
        var nextOffset: Int64
        /// When the last record was read.
        var readAt = MonotonicTime(nanoseconds: 0)
        var events = Ends()
        var pins = Ends()
        var holders = 0
        var isOpen = true
        let isTable: Bool
        let topic: UInt16
        let partition: Int32

        struct Ends: BitwiseCopyable {
            var head = none
            var tail = none
        }

        init(
            _ id: AssignmentID, topic: UInt16, partition: Int32, startOffset: Int64, isTable: Bool
        ) {
            self.id = id
            nextOffset = startOffset
            self.isTable = isTable
            self.topic = topic
            self.partition = partition
        }

        subscript(list: List) -> Ends {
            get { list == .events ? events : pins }
            set { if list == .events { events = newValue } else { pins = newValue } }
        }
    }

    package init(registrationGrace: Duration) { self.registrationGrace = registrationGrace }

    // MARK: Assignments

    /// A partition is ours from this offset on.
    /// - Parameter topic: the position of its topic in the list of subscribed ones.
    package mutating func open(
        _ id: AssignmentID, topic: UInt16, partition: Int32, startOffset: Int64
    ) {
        open(
            Assignment(
                id, topic: topic, partition: partition, startOffset: startOffset, isTable: false))
    }

    /// A partition that is replayed as a table is ours.
    package mutating func openTable(_ id: AssignmentID, partition: Int32) {
        open(Assignment(id, topic: 0, partition: partition, startOffset: 0, isTable: true))
    }

    private mutating func open(_ assignment: Assignment) {
        let ordinal = Int(assignment.id.ordinal)
        while places.count <= ordinal { places.append(Self.none) }
        precondition(places[ordinal] == Self.none, "assigned twice")
        let window = GraceWindow(startOffset: assignment.nextOffset)
        if let place = freePlaces.popLast() {
            assignments[Int(place)] = assignment
            graceWindows[Int(place)] = window
            places[ordinal] = place
        } else {
            places[ordinal] = UInt32(assignments.count)
            assignments.append(assignment)
            graceWindows.append(window)
        }
    }

    /// The partition is no longer ours. Claims on it may still be given back, without effect.
    package mutating func close(_ id: AssignmentID) {
        let place = place(of: id)
        assignments[place].isOpen = false
        places[Int(id.ordinal)] = Self.none
        recycleIfUnused(UInt32(place))
    }

    /// Whether the partition is ours under this assignment, and not under a later one.
    package func isOpen(_ id: AssignmentID) -> Bool { openPlace(of: id) != nil }

    /// The assignments that are ours, except those of tables.
    package var open: [AssignmentID] {
        (0..<assignments.count).compactMap { place in
            let assignment = assignments[place]
            return assignment.isOpen && !assignment.isTable ? assignment.id : nil
        }
    }

    private func place(of id: AssignmentID) -> Int {
        guard let place = openPlace(of: id) else {
            preconditionFailure("an assignment that is not ours: \(id)")
        }
        return place
    }

    private func openPlace(of id: AssignmentID) -> Int? {
        let ordinal = Int(id.ordinal)
        guard ordinal < places.count, places[ordinal] != Self.none else { return nil }
        let place = Int(places[ordinal])
        return assignments[place].id == id ? place : nil
    }

    /// A record was read. Offsets grow, with gaps.
    /// - Returns: the position of the record.
    @discardableResult
    package mutating func received(
        _ id: AssignmentID, offset: Int64, now: MonotonicTime
    ) -> RecordPosition {
        let place = place(of: id)
        let assignment = assignments[place]
        precondition(offset >= assignment.nextOffset, "offset \(offset) read twice")
        assignments[place].nextOffset = offset + 1
        assignments[place].readAt = now
        graceWindows[place].received(nextOffset: offset + 1, now: now)
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition, offset: offset)
    }

    /// The offset to store: the position of the next record to read after a crash.
    package mutating func committableOffset(_ id: AssignmentID, now: MonotonicTime) -> Int64 {
        let place = place(of: id)
        let offsetPastGrace = graceWindows[place].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        return min(offsetPastGrace, endedOffset(place))
    }

    /// The offset below which every event has ended for each token that is known now.
    package func endedOffset(_ id: AssignmentID) -> Int64 { endedOffset(place(of: id)) }

    private func endedOffset(_ place: Int) -> Int64 {
        var endedOffset = assignments[place].nextOffset
        let head = (events: assignments[place].events.head, pins: assignments[place].pins.head)
        if head.events != Self.none {
            endedOffset = min(endedOffset, holders[Int(head.events)].offset)
        }
        if head.pins != Self.none {
            endedOffset = min(endedOffset, holders[Int(head.pins)].offset)
        }
        return endedOffset
    }

    /// Whether everything read under this assignment has ended. Tokens that register within the
    /// grace period of an event may still be owed it.
    package func isDrained(_ id: AssignmentID) -> Bool {
        endedOffset(id) == assignments[place(of: id)].nextOffset
    }

    /// When the oldest record was read whose offset cannot be stored yet: it is a holder, or within
    /// its grace period. Nil if there is none. Costs a look at each assignment.
    package var oldestUncommittedReadAt: MonotonicTime? {
        var oldest: MonotonicTime?
        func note(_ time: MonotonicTime?) {
            if let time { oldest = min(oldest ?? time, time) }
        }
        for place in 0..<assignments.count
        where assignments[place].isOpen && !assignments[place].isTable {
            for head in [assignments[place].events.head, assignments[place].pins.head]
            where head != Self.none {
                note(holders[Int(head)].readAt)
            }
            note(graceWindows[place].oldestReadAt)
        }
        return oldest
    }

    /// The position of the record that this claim holds; nil where its partition is no longer ours.
    package func position(of hold: OffsetClaim) -> RecordPosition? {
        let holder = holders[Int(hold.holder.rawValue)]
        let assignment = assignments[Int(holder.place)]
        guard assignment.isOpen else { return nil }
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition, offset: holder.offset)
    }

    /// Where the partition's next record will be.
    package func nextPosition(_ id: AssignmentID) -> RecordPosition {
        let assignment = assignments[place(of: id)]
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition,
            offset: assignment.nextOffset)
    }

    package func nextOffset(_ id: AssignmentID) -> Int64 { assignments[place(of: id)].nextOffset }

    // MARK: Claims

    /// Makes a holder of the record that was received last, with one claim.
    package mutating func hold(_ id: AssignmentID) -> OffsetClaim {
        let place = place(of: id)
        return append(
            to: .events, of: place, offset: assignments[place].nextOffset - 1,
            readAt: assignments[place].readAt)
    }

    /// Makes a holder of a table's row, with one claim. Offsets may come in any order.
    package mutating func holdRow(_ id: AssignmentID, offset: Int64) -> OffsetClaim {
        let place = place(of: id)
        precondition(assignments[place].isTable, "only a table has rows")
        precondition(endedRows.isEmpty, "rows that have ended must be taken first")
        assignments[place].nextOffset = max(offset + 1, assignments[place].nextOffset)
        return append(to: .events, of: place, offset: offset, readAt: assignments[place].readAt)
    }

    /// Whether this is a claim on a row of a table.
    package func isOfTable(_ hold: OffsetClaim) -> Bool {
        assignments[Int(holders[Int(hold.holder.rawValue)].place)].isTable
    }

    /// Returns `endedRows` and empties it.
    package mutating func takeEndedRows() -> [OffsetClaim] {
        let rows = endedRows
        endedRows = []
        return rows
    }

    /// Claims the oldest offset within its grace period, in every partition that has one.
    package mutating func pinWithinGrace(now: MonotonicTime) -> [OffsetClaim] {
        var pins: [OffsetClaim] = []
        for place in 0..<assignments.count
        where assignments[place].isOpen && !assignments[place].isTable {
            if let pin = pinWithinGrace(place, now: now) { pins.append(pin) }
        }
        return pins
    }

    /// Claims the oldest offset within its grace period; nil when all are past it.
    package mutating func pinWithinGrace(_ id: AssignmentID, now: MonotonicTime) -> OffsetClaim? {
        pinWithinGrace(place(of: id), now: now)
    }

    private mutating func pinWithinGrace(_ place: Int, now: MonotonicTime) -> OffsetClaim? {
        let offset = graceWindows[place].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        guard offset < assignments[place].nextOffset else { return nil }
        let tail = assignments[place].pins.tail
        if tail != Self.none, holders[Int(tail)].offset == offset {
            holders[Int(tail)].claims += 1
            return OffsetClaim(
                epoch: assignments[place].id.epoch, holder: HolderID(rawValue: tail),
                offset: offset)
        }
        let readAt = graceWindows[place].oldestReadAt ?? now
        return append(to: .pins, of: place, offset: offset, readAt: readAt)
    }

    /// Adds a claim to a holder that has at least one.
    package mutating func retain(_ hold: OffsetClaim) {
        precondition(holders[Int(hold.holder.rawValue)].claims > 0, "retained after its end")
        holders[Int(hold.holder.rawValue)].claims += 1
    }

    /// Gives a claim back.
    package mutating func release(_ hold: OffsetClaim) {
        let row = Int(hold.holder.rawValue)
        precondition(holders[row].claims > 0, "released more often than claimed")
        holders[row].claims -= 1
        guard holders[row].claims == 0 else { return }
        let assignment = assignments[Int(holders[row].place)]
        if assignment.isTable, assignment.isOpen { endedRows.append(hold) }
        remove(hold.holder.rawValue)
    }

    /// Whether the holder that this claim was made for is still there. Unlike every other question
    /// about a claim, this one may be asked when the claim has been given back.
    package func isHeld(_ claim: OffsetClaim) -> Bool {
        let holder = holders[Int(claim.holder.rawValue)]
        return holder.claims > 0 && holder.offset == claim.offset
            && assignments[Int(holder.place)].id.epoch == claim.epoch
    }

    /// Which of two claims on one assignment holds more.
    package func isOlder(_ hold: OffsetClaim, than other: OffsetClaim) -> Bool {
        if hold.offset != other.offset { return hold.offset < other.offset }
        return holders[Int(hold.holder.rawValue)].part < holders[Int(other.holder.rawValue)].part
    }

    /// Makes a further holder of the same offset, with one claim: by it can be told when this part of
    /// what the event asks for has ended.
    package mutating func split(_ hold: OffsetClaim, part: UInt16) -> OffsetClaim {
        let row = Int(hold.holder.rawValue)
        precondition(holders[row].claims > 0, "split after its end")
        var holder = holders[row]
        holder.claims = 1
        holder.part = part
        holder.previous = hold.holder.rawValue
        let added = holderRows.take()
        if Int(added) < holders.count {
            holders[Int(added)] = holder
        } else {
            holders.append(holder)
        }
        if holder.next == Self.none {
            assignments[Int(holder.place)][holder.kind].tail = added
        } else {
            holders[Int(holder.next)].previous = added
        }
        holders[row].next = added
        assignments[Int(holder.place)].holders += 1
        return OffsetClaim(
            epoch: hold.epoch, holder: HolderID(rawValue: added), offset: holder.offset)
    }

    /// Calls `body` with each event that has not ended, the oldest first, until it returns false; only
    /// with those that are older than every event which is owed to a token that came late.
    package func forEachOpen(_ id: AssignmentID, _ body: (OffsetClaim) -> Bool) {
        let place = place(of: id)
        let pin = assignments[place].pins.head
        let end = pin == Self.none ? Int64.max : holders[Int(pin)].offset
        var row = assignments[place].events.head
        while row != Self.none, holders[Int(row)].offset < end {
            let claim = OffsetClaim(
                epoch: id.epoch, holder: HolderID(rawValue: row), offset: holders[Int(row)].offset)
            guard body(claim) else { return }
            row = holders[Int(row)].next
        }
    }

    package func offset(of hold: OffsetClaim) -> Int64 { holders[Int(hold.holder.rawValue)].offset }

    /// Holders of all assignments: what the tracker's memory grows with.
    package var holderCount: Int { holderRows.count }

    /// How many events of this partition have not ended; 0 if it is no longer ours.
    package func holderCount(of id: AssignmentID) -> Int {
        openPlace(of: id).map { assignments[$0].holders } ?? 0
    }

    /// The memory of the holders, at their peak so far.
    package var bytes: Int { holders.bytes + holderRows.bytes }

    // MARK: Lists

    private mutating func append(
        to list: List, of place: Int, offset: Int64, readAt: MonotonicTime
    ) -> OffsetClaim {
        let tail = assignments[place][list].tail
        let holder = Holder(
            offset: offset, readAt: readAt, claims: 1, place: UInt32(truncatingIfNeeded: place),
            next: Self.none, previous: tail, kind: list)
        let row = holderRows.take()
        if Int(row) < holders.count {
            holders[Int(row)] = holder
        } else {
            holders.append(holder)
        }
        if tail == Self.none {
            assignments[place][list].head = row
        } else {
            holders[Int(tail)].next = row
        }
        assignments[place][list].tail = row
        assignments[place].holders += 1
        return OffsetClaim(
            epoch: assignments[place].id.epoch, holder: HolderID(rawValue: row), offset: offset)
    }

    private mutating func remove(_ row: UInt32) {
        let holder = holders[Int(row)]
        let place = Int(holder.place)
        if holder.previous == Self.none {
            assignments[place][holder.kind].head = holder.next
        } else {
            holders[Int(holder.previous)].next = holder.next
        }
        if holder.next == Self.none {
            assignments[place][holder.kind].tail = holder.previous
        } else {
            holders[Int(holder.next)].previous = holder.previous
        }
        holderRows.give(row)
        assignments[place].holders -= 1
        recycleIfUnused(holder.place)
    }

    /// The index of an assignment that is over is used again only when no claim on it is left.
    private mutating func recycleIfUnused(_ place: UInt32) {
        let assignment = assignments[Int(place)]
        guard !assignment.isOpen, assignment.holders == 0 else { return }
        freePlaces.append(place)
    }
}

extension OffsetTracker {
    /// Walks everything; for tests and simulation.
    package func checkInvariants() {
        var listed = 0
        for place in 0..<assignments.count where !freePlaces.contains(UInt32(place)) {
            let assignment = assignments[place]
            let events = checkList(assignment.events, of: place)
            let pins = checkList(assignment.pins, of: place)
            precondition(events + pins == assignment.holders, "\(assignment.id) miscounts holders")
            listed += events + pins
            precondition(
                assignment.isOpen || assignment.holders > 0, "\(assignment.id) is over, and kept")
            precondition(
                (openPlace(of: assignment.id) == place) == assignment.isOpen,
                "an assignment must be found exactly while it is open")
        }
        precondition(listed == holderCount, "a holder stands in no list")
    }

    private func checkList(_ ends: Assignment.Ends, of place: Int) -> Int {
        var count = 0
        var row = ends.head
        var previous = Self.none
        while row != Self.none {
            let holder = holders[Int(row)]
            precondition(holder.claims > 0, "a holder without a claim is still listed")
            precondition(holder.place == UInt32(place), "a holder stands in another list")
            precondition(holder.previous == previous, "broken back link")
            precondition(
                holder.offset < assignments[place].nextOffset, "holds an offset not yet read")
            if previous != Self.none, !assignments[place].isTable {
                precondition(holders[Int(previous)].offset <= holder.offset, "out of order")
            }
            previous = row
            row = holder.next
            count += 1
        }
        precondition(previous == ends.tail, "the tail is not the last")
        return count
    }
}
