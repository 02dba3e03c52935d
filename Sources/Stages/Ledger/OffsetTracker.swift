// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Says which offset of each partition may be committed: what an offset *means* is defined here.
///
/// An event whose effects have not all ended is *claimed*: its offset, and the number of references to
/// the claim. Claims of one assignment stand in a list in offset order; one whose last reference is
/// given back leaves the list. The **committable offset** is the oldest of
/// - the oldest claim's offset,
/// - the oldest offset read less than `registrationGrace` ago (a registration that arrives within
///   that time is still owed a push for it), and
/// - the offset after the last one read.
///
/// Committing the committable offset is safe at any instant: every offset below it has ended. Memory
/// is bounded by the number of claims, not by the number of events.
///
/// The **ended offset** leaves out the grace period: every event below it has ended for each token
/// that the worker knows. It is what a partition that is given up waits for, and what the next
/// owner is told (`CommitNote` in the pipeline).
///
/// A partition that is replayed as a table is opened too, but its offsets are never committed: each of
/// its claims is one row of the table, and `endedRows` names those whose last reference has been given
/// back.
///
/// The state of an assignment is found by two array look-ups. It outlives the assignment while
/// claims on it are out, but only these claims can still reach it.
package struct OffsetTracker: ~Copyable {
    /// Rows of open tables whose last claim was given back, in that order. The owner of the table
    /// must take them before it makes another row.
    package private(set) var endedRows: [OffsetClaim] = []

    private var claims = Column<Entry>(capacity: Self.claimsMax)
    private var claimRows = FreeList(first: 0, capacity: Self.claimsMax)
    private var assignments = Column<Assignment>(capacity: Self.assignmentsMax)
    /// The grace window of each assignment, at the same index as in `assignments`.
    private var graceWindows: [GraceWindow] = []
    /// Indices of `assignments` that are free to be used again.
    private var freeSlots: [UInt32] = []
    /// The index in `assignments` of each ordinal, or `none` where the assignment is over.
    private var slots = Column<UInt32>(capacity: Self.assignmentsMax)
    private let registrationGrace: Duration
    private let byAddress = PassedByAddress()

    private static let none = UInt32.max
    /// The most claims at once; the references to so many would fill any machine.
    private static let claimsMax = 1 << 30
    private static let assignmentsMax = 1 << 20

    private struct Entry: BitwiseCopyable {
        var offset: Int64
        /// When its record was read; meaningless for a table's row.
        var readAt: MonotonicTime
        /// Those that were given out and not given back; zero only while the row is free.
        var references: UInt32
        /// The index of its assignment in `assignments`.
        var slot: UInt32
        var next: UInt32
        var previous: UInt32
        var kind: List
        /// Of claims of one offset, that of the lower part keeps more.
        var part: UInt16 = 0
    }

    /// An assignment has two lists, each in offset order because each is appended to in that order:
    /// `events` for records and, in any order, for rows of tables, and `late` for events that are past: such
    /// a claim keeps the oldest offset within its grace period for a token that registered after the event.
    private enum List: UInt8, BitwiseCopyable { case events, late }

    private struct Assignment: BitwiseCopyable {
        let id: AssignmentID
        var nextOffset: Int64
        /// When the last record was read.
        var readAt = MonotonicTime(nanoseconds: 0)
        var events = Ends()
        var late = Ends()
        var claims = 0
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
            get { list == .events ? events : late }
            set { if list == .events { events = newValue } else { late = newValue } }
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
        while slots.count <= ordinal { slots.append(Self.none) }
        precondition(slots[ordinal] == Self.none, "a partition is assigned at most once at a time")
        let window = GraceWindow(startOffset: assignment.nextOffset)
        if let slot = freeSlots.popLast() {
            assignments[Int(slot)] = assignment
            graceWindows[Int(slot)] = window
            slots[ordinal] = slot
        } else {
            slots[ordinal] = UInt32(assignments.count)
            assignments.append(assignment)
            graceWindows.append(window)
        }
    }

    /// The partition is no longer ours. Claims on it may still be given back, without effect.
    package mutating func close(_ id: AssignmentID) {
        let slot = slot(of: id)
        assignments[slot].isOpen = false
        slots[Int(id.ordinal)] = Self.none
        recycleIfUnused(UInt32(slot))
    }

    /// Whether the partition is ours under this assignment, and not under a later one.
    package func isOpen(_ id: AssignmentID) -> Bool { openSlot(of: id) != nil }

    /// The assignments that are ours, except those of tables.
    package var open: [AssignmentID] {
        (0..<assignments.count).compactMap { slot in
            let assignment = assignments[slot]
            return assignment.isOpen && !assignment.isTable ? assignment.id : nil
        }
    }

    private func slot(of id: AssignmentID) -> Int {
        guard let slot = openSlot(of: id) else {
            preconditionFailure("an assignment that is named is ours: \(id)")
        }
        return slot
    }

    private func openSlot(of id: AssignmentID) -> Int? {
        let ordinal = Int(id.ordinal)
        guard ordinal < slots.count, slots[ordinal] != Self.none else { return nil }
        let slot = Int(slots[ordinal])
        return assignments[slot].id == id ? slot : nil
    }

    /// A record was read. Offsets grow, with gaps.
    /// - Returns: the position of the record.
    @discardableResult
    package mutating func received(
        _ id: AssignmentID, offset: Int64, now: MonotonicTime
    ) -> RecordPosition {
        let slot = slot(of: id)
        let assignment = assignments[slot]
        precondition(
            offset >= assignment.nextOffset, "each offset is read once, in order: \(offset)")
        assignments[slot].nextOffset = offset + 1
        assignments[slot].readAt = now
        graceWindows[slot].received(nextOffset: offset + 1, now: now)
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition, offset: offset)
    }

    /// The offset to commit: the position of the next record to read after a crash.
    package mutating func committableOffset(_ id: AssignmentID, now: MonotonicTime) -> Int64 {
        let slot = slot(of: id)
        let offsetPastGrace = graceWindows[slot].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        return min(offsetPastGrace, endedOffset(slot))
    }

    /// The offset below which every event has ended for each token that is known now.
    package func endedOffset(_ id: AssignmentID) -> Int64 { endedOffset(slot(of: id)) }

    private func endedOffset(_ slot: Int) -> Int64 {
        var endedOffset = assignments[slot].nextOffset
        let head = (events: assignments[slot].events.head, late: assignments[slot].late.head)
        if head.events != Self.none {
            endedOffset = min(endedOffset, claims[Int(head.events)].offset)
        }
        if head.late != Self.none {
            endedOffset = min(endedOffset, claims[Int(head.late)].offset)
        }
        return endedOffset
    }

    /// Whether everything read under this assignment has ended. Tokens that register within the
    /// grace period of an event may still be owed it.
    package func isDrained(_ id: AssignmentID) -> Bool {
        endedOffset(id) == assignments[slot(of: id)].nextOffset
    }

    /// When the oldest record was read whose offset cannot be committed yet: it is claimed, or within
    /// its grace period. Nil if there is none. Costs a look at each assignment.
    package var oldestUncommittedReadAt: MonotonicTime? {
        var oldest: MonotonicTime?
        func note(_ time: MonotonicTime?) {
            if let time { oldest = min(oldest ?? time, time) }
        }
        for slot in 0..<assignments.count
        where assignments[slot].isOpen && !assignments[slot].isTable {
            for head in [assignments[slot].events.head, assignments[slot].late.head]
            where head != Self.none {
                note(claims[Int(head)].readAt)
            }
            note(graceWindows[slot].oldestReadAt)
        }
        return oldest
    }

    /// The position of the record that this claim holds; nil where its partition is no longer ours.
    package func position(of claim: OffsetClaim) -> RecordPosition? {
        let entry = claims[Int(claim.id.rawValue)]
        let assignment = assignments[Int(entry.slot)]
        guard assignment.isOpen else { return nil }
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition, offset: entry.offset)
    }

    /// Where the partition's next record will be.
    package func nextPosition(_ id: AssignmentID) -> RecordPosition {
        let assignment = assignments[slot(of: id)]
        return RecordPosition(
            topic: assignment.topic, partition: assignment.partition,
            offset: assignment.nextOffset)
    }

    package func nextOffset(_ id: AssignmentID) -> Int64 { assignments[slot(of: id)].nextOffset }

    // MARK: Claims

    /// Claims the record that was received last, with one reference.
    package mutating func claim(_ id: AssignmentID) -> OffsetClaim {
        let slot = slot(of: id)
        return append(
            to: .events, of: slot, offset: assignments[slot].nextOffset - 1,
            readAt: assignments[slot].readAt)
    }

    /// Claims a table's row, with one reference. Offsets may come in any order.
    package mutating func claimRow(_ id: AssignmentID, offset: Int64) -> OffsetClaim {
        let slot = slot(of: id)
        precondition(assignments[slot].isTable, "only a table has rows to claim")
        precondition(endedRows.isEmpty, "rows that have ended are taken before another is claimed")
        assignments[slot].nextOffset = max(offset + 1, assignments[slot].nextOffset)
        return append(to: .events, of: slot, offset: offset, readAt: assignments[slot].readAt)
    }

    /// Whether this is a claim on a row of a table.
    package func isOfTable(_ claim: OffsetClaim) -> Bool {
        assignments[Int(claims[Int(claim.id.rawValue)].slot)].isTable
    }

    /// Returns `endedRows` and empties it.
    package mutating func takeEndedRows() -> [OffsetClaim] {
        let rows = endedRows
        endedRows = []
        return rows
    }

    /// Claims the oldest offset within its grace period, in every partition that has one.
    package mutating func claimWithinGrace(now: MonotonicTime) -> [OffsetClaim] {
        var found: [OffsetClaim] = []
        for slot in 0..<assignments.count
        where assignments[slot].isOpen && !assignments[slot].isTable {
            if let claim = claimWithinGrace(slot, now: now) { found.append(claim) }
        }
        return found
    }

    /// Claims the oldest offset within its grace period; nil when all are past it.
    package mutating func claimWithinGrace(_ id: AssignmentID, now: MonotonicTime) -> OffsetClaim? {
        claimWithinGrace(slot(of: id), now: now)
    }

    private mutating func claimWithinGrace(_ slot: Int, now: MonotonicTime) -> OffsetClaim? {
        let offset = graceWindows[slot].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        guard offset < assignments[slot].nextOffset else { return nil }
        let tail = assignments[slot].late.tail
        if tail != Self.none, claims[Int(tail)].offset == offset {
            claims[Int(tail)].references += 1
            return OffsetClaim(
                epoch: assignments[slot].id.epoch, id: ClaimID(rawValue: tail),
                offset: offset)
        }
        let readAt = graceWindows[slot].oldestReadAt ?? now
        return append(to: .late, of: slot, offset: offset, readAt: readAt)
    }

    /// Adds a reference to a claim that has at least one.
    package mutating func retain(_ claim: OffsetClaim) {
        precondition(
            claims[Int(claim.id.rawValue)].references > 0,
            "a claim is retained only while it has a reference")
        claims[Int(claim.id.rawValue)].references += 1
    }

    /// Gives a reference back.
    package mutating func release(_ claim: OffsetClaim) {
        let row = Int(claim.id.rawValue)
        precondition(claims[row].references > 0, "each reference to a claim is given back once")
        claims[row].references -= 1
        guard claims[row].references == 0 else { return }
        let assignment = assignments[Int(claims[row].slot)]
        if assignment.isTable, assignment.isOpen { endedRows.append(claim) }
        remove(claim.id.rawValue)
    }

    /// Whether the claim that this one refers to is still there. Unlike every other question
    /// about a claim, this one may be asked when the claim has been given back.
    package func isHeld(_ claim: OffsetClaim) -> Bool {
        let entry = claims[Int(claim.id.rawValue)]
        return entry.references > 0 && entry.offset == claim.offset
            && assignments[Int(entry.slot)].id.epoch == claim.epoch
    }

    /// Which of two claims on one assignment holds more.
    package func isOlder(_ claim: OffsetClaim, than other: OffsetClaim) -> Bool {
        if claim.offset != other.offset { return claim.offset < other.offset }
        return claims[Int(claim.id.rawValue)].part < claims[Int(other.id.rawValue)].part
    }

    /// Makes a further claim on the same offset, with one reference: by it can be told when this part of
    /// what the event asks for has ended.
    package mutating func split(_ claim: OffsetClaim, part: UInt16) -> OffsetClaim {
        let row = Int(claim.id.rawValue)
        precondition(claims[row].references > 0, "a claim is split only while it has a reference")
        var entry = claims[row]
        entry.references = 1
        entry.part = part
        entry.previous = claim.id.rawValue
        let added = claimRows.take()
        if Int(added) < claims.count {
            claims[Int(added)] = entry
        } else {
            claims.append(entry)
        }
        if entry.next == Self.none {
            assignments[Int(entry.slot)][entry.kind].tail = added
        } else {
            claims[Int(entry.next)].previous = added
        }
        claims[row].next = added
        assignments[Int(entry.slot)].claims += 1
        return OffsetClaim(
            epoch: claim.epoch, id: ClaimID(rawValue: added), offset: entry.offset)
    }

    /// Calls `body` with each event that has not ended, the oldest first, until it returns false; only
    /// with those that are older than every event which is owed to a token that came late.
    package func forEachOpen(_ id: AssignmentID, _ body: (OffsetClaim) -> Bool) {
        let slot = slot(of: id)
        let late = assignments[slot].late.head
        let end = late == Self.none ? Int64.max : claims[Int(late)].offset
        var row = assignments[slot].events.head
        while row != Self.none, claims[Int(row)].offset < end {
            let claim = OffsetClaim(
                epoch: id.epoch, id: ClaimID(rawValue: row), offset: claims[Int(row)].offset)
            guard body(claim) else { return }
            row = claims[Int(row)].next
        }
    }

    package func offset(of claim: OffsetClaim) -> Int64 { claims[Int(claim.id.rawValue)].offset }

    /// Claims of all assignments: what the tracker's memory grows with.
    package var claimCount: Int { claimRows.count }

    /// How many events of this partition have not ended; 0 if it is no longer ours.
    package func claimCount(of id: AssignmentID) -> Int {
        openSlot(of: id).map { assignments[$0].claims } ?? 0
    }

    /// The memory of the claims, at their peak so far.
    package var bytes: Int { claims.bytes + claimRows.bytes }

    // MARK: Lists

    private mutating func append(
        to list: List, of slot: Int, offset: Int64, readAt: MonotonicTime
    ) -> OffsetClaim {
        let tail = assignments[slot][list].tail
        let entry = Entry(
            offset: offset, readAt: readAt, references: 1, slot: UInt32(truncatingIfNeeded: slot),
            next: Self.none, previous: tail, kind: list)
        let row = claimRows.take()
        if Int(row) < claims.count {
            claims[Int(row)] = entry
        } else {
            claims.append(entry)
        }
        if tail == Self.none {
            assignments[slot][list].head = row
        } else {
            claims[Int(tail)].next = row
        }
        assignments[slot][list].tail = row
        assignments[slot].claims += 1
        return OffsetClaim(
            epoch: assignments[slot].id.epoch, id: ClaimID(rawValue: row), offset: offset)
    }

    private mutating func remove(_ row: UInt32) {
        let entry = claims[Int(row)]
        let slot = Int(entry.slot)
        if entry.previous == Self.none {
            assignments[slot][entry.kind].head = entry.next
        } else {
            claims[Int(entry.previous)].next = entry.next
        }
        if entry.next == Self.none {
            assignments[slot][entry.kind].tail = entry.previous
        } else {
            claims[Int(entry.next)].previous = entry.previous
        }
        claimRows.give(row)
        assignments[slot].claims -= 1
        recycleIfUnused(entry.slot)
    }

    /// The index of an assignment that is over is used again only when no claim on it is left.
    private mutating func recycleIfUnused(_ slot: UInt32) {
        let assignment = assignments[Int(slot)]
        guard !assignment.isOpen, assignment.claims == 0 else { return }
        freeSlots.append(slot)
    }
}

extension OffsetTracker {
    /// Looks at everything; for tests and simulation.
    package func checkInvariants() {
        var listed = 0
        for slot in 0..<assignments.count where !freeSlots.contains(UInt32(slot)) {
            let assignment = assignments[slot]
            let events = checkList(assignment.events, of: slot)
            let late = checkList(assignment.late, of: slot)
            precondition(
                events + late == assignment.claims,
                "the count of claims is that of both lists: \(assignment.id)")
            listed += events + late
            precondition(
                assignment.isOpen || assignment.claims > 0,
                "an assignment that is over is kept only for claims: \(assignment.id)")
            precondition(
                (openSlot(of: assignment.id) == slot) == assignment.isOpen,
                "an assignment is found exactly while it is open")
        }
        precondition(listed == claimCount, "each claim stands in one list")
    }

    private func checkList(_ ends: Assignment.Ends, of slot: Int) -> Int {
        var count = 0
        var row = ends.head
        var previous = Self.none
        while row != Self.none {
            let entry = claims[Int(row)]
            precondition(entry.references > 0, "a listed claim has a reference")
            precondition(
                entry.slot == UInt32(slot), "a claim names the assignment whose list it stands in")
            precondition(
                entry.previous == previous, "a claim's back link names the list entry before it")
            precondition(
                entry.offset < assignments[slot].nextOffset,
                "a claim holds an offset that was read")
            if previous != Self.none, !assignments[slot].isTable {
                precondition(
                    claims[Int(previous)].offset <= entry.offset,
                    "a list's claims are in the order of their offsets")
            }
            previous = row
            row = entry.next
            count += 1
        }
        precondition(previous == ends.tail, "a list's tail is the last of its entries")
        return count
    }
}
