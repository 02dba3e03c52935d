// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Says which offset of each partition may be stored: what an offset *means* is defined here.
///
/// An event whose effects have not all ended is a *holder*: its offset, and the number of claims on
/// it. Holders of one track stand in a list in offset order; one whose last claim is given back
/// leaves the list. The **committable offset** is the oldest of
/// - the oldest holder's offset,
/// - the oldest offset read less than `registrationGrace` ago (a registration that arrives within
///   that time is still owed a push for it), and
/// - the offset after the last one read.
///
/// Storing the committable offset is safe at any instant: every offset below it has ended. Memory
/// is bounded by the number of claims, not by the number of events.
///
/// A partition that is replayed as a table has a track too, whose offsets are never stored: each of
/// its holders is one row of the table, and `endedRows` says when the last claim on it is back.
package struct OffsetTracker: ~Copyable {
    /// Rows of open tables whose last claim was given back, in that order: whoever keeps the table
    /// sees to them, before it makes another row.
    package private(set) var endedRows: [Hold] = []

    private var holders = Column<Holder>(capacity: Self.holdersMax)
    private var holderRows = FreeList(first: 0, capacity: Self.holdersMax)
    private var tracks = Column<Track>(capacity: Self.tracksMax)
    /// By track.
    private var graceWindows: [GraceWindow] = []
    private var freeTracks: [UInt32] = []
    private let registrationGrace: Duration
    private let byAddress = PassedByAddress()

    private static let none = UInt32.max
    /// Ever at once; the claims on them would fill any machine.
    private static let holdersMax = 1 << 30
    private static let tracksMax = 1 << 20

    private struct Holder: BitwiseCopyable {
        var offset: Int64
        /// Claims on this offset; zero only while the row is free.
        var claims: UInt32
        var track: UInt32
        var next: UInt32
        var previous: UInt32
        var kind: List
    }

    /// A track has two lists, each in offset order because each is appended to in that order.
    private enum List: UInt8, BitwiseCopyable { case events, pins }

    private struct Track: BitwiseCopyable {
        var nextOffset: Int64
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

        init(topic: UInt16, partition: Int32, startOffset: Int64, isTable: Bool) {
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

    // MARK: Tracks

    /// - Parameter topic: the position of its topic in the list of subscribed ones.
    package mutating func openTrack(
        topic: UInt16 = 0, partition: Int32 = 0, startOffset: Int64
    ) -> TrackID {
        open(
            Track(topic: topic, partition: partition, startOffset: startOffset, isTable: false),
            startOffset: startOffset)
    }

    package mutating func openTable(partition: Int32 = 0) -> TrackID {
        open(
            Track(topic: 0, partition: partition, startOffset: 0, isTable: true), startOffset: 0)
    }

    private mutating func open(_ track: Track, startOffset: Int64) -> TrackID {
        let window = GraceWindow(startOffset: startOffset)
        if let row = freeTracks.popLast() {
            tracks[Int(row)] = track
            graceWindows[Int(row)] = window
            return TrackID(rawValue: row)
        }
        tracks.append(track)
        graceWindows.append(window)
        return TrackID(rawValue: UInt32(tracks.count - 1))
    }

    /// The partition is no longer ours. Claims on it may still be given back, and count for nothing.
    package mutating func closeTrack(_ id: TrackID) {
        precondition(tracks[Int(id.rawValue)].isOpen, "track \(id.rawValue) closed twice")
        tracks[Int(id.rawValue)].isOpen = false
        recycleIfUnused(id.rawValue)
    }

    /// A record was read. Offsets grow, with gaps.
    package mutating func received(_ id: TrackID, offset: Int64, now: MonotonicTime) {
        let row = Int(id.rawValue)
        precondition(offset >= tracks[row].nextOffset, "offset \(offset) read twice in one epoch")
        tracks[row].nextOffset = offset + 1
        graceWindows[row].received(nextOffset: offset + 1, now: now)
    }

    /// The offset to store: the position of the next record to read after a crash.
    package mutating func committableOffset(_ id: TrackID, now: MonotonicTime) -> Int64 {
        let row = Int(id.rawValue)
        var committableOffset = graceWindows[row].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        let head = (events: tracks[row].events.head, pins: tracks[row].pins.head)
        if head.events != Self.none {
            committableOffset = min(committableOffset, holders[Int(head.events)].offset)
        }
        if head.pins != Self.none {
            committableOffset = min(committableOffset, holders[Int(head.pins)].offset)
        }
        return committableOffset
    }

    /// Whether everything read from this track has ended and is past its grace period.
    package mutating func isDrained(_ id: TrackID, now: MonotonicTime) -> Bool {
        committableOffset(id, now: now) == tracks[Int(id.rawValue)].nextOffset
    }

    /// Whether everything read from this track was read at least `registrationGrace` ago.
    package mutating func isPastGrace(_ id: TrackID, now: MonotonicTime) -> Bool {
        let row = Int(id.rawValue)
        return graceWindows[row].offsetPastGrace(now: now, registrationGrace: registrationGrace)
            == tracks[row].nextOffset
    }

    /// The longest time until `isPastGrace` is true of what has been read, where it is called all
    /// the time.
    package static func graceEndsWithin(_ registrationGrace: Duration) -> Duration {
        GraceWindow.graceEndsWithin(registrationGrace)
    }

    /// The record of this track at this offset.
    package func position(_ id: TrackID, offset: Int64) -> RecordPosition {
        let row = Int(id.rawValue)
        return RecordPosition(
            topic: tracks[row].topic, partition: tracks[row].partition, offset: offset)
    }

    /// What this claim holds; nil where its partition is no longer ours.
    package func position(of hold: Hold) -> RecordPosition? {
        guard tracks[Int(hold.track.rawValue)].isOpen else { return nil }
        return position(hold.track, offset: offset(of: hold))
    }

    package func nextOffset(_ id: TrackID) -> Int64 { tracks[Int(id.rawValue)].nextOffset }

    // MARK: Claims

    /// Makes a holder of the record that was received last, with one claim.
    package mutating func hold(_ id: TrackID) -> Hold {
        let offset = tracks[Int(id.rawValue)].nextOffset - 1
        let holder = append(to: .events, of: id.rawValue, offset: offset)
        return Hold(track: id, holder: holder, offset: offset)
    }

    /// Makes a holder of a table's row, with one claim. Offsets grow, with gaps.
    package mutating func holdRow(_ id: TrackID, offset: Int64) -> Hold {
        let row = Int(id.rawValue)
        precondition(tracks[row].isTable, "rows are of tables")
        precondition(endedRows.isEmpty, "a row that has ended must be seen to first")
        precondition(offset >= tracks[row].nextOffset, "offset \(offset) read twice in one epoch")
        tracks[row].nextOffset = offset + 1
        let holder = append(to: .events, of: id.rawValue, offset: offset)
        return Hold(track: id, holder: holder, offset: offset)
    }

    package func isTable(_ id: TrackID) -> Bool { tracks[Int(id.rawValue)].isTable }

    /// Empties `endedRows`.
    package mutating func takeEndedRows() -> [Hold] {
        let rows = endedRows
        endedRows = []
        return rows
    }

    /// Claims the oldest offset within its grace period, in every partition that has one.
    package mutating func pinWithinGrace(now: MonotonicTime) -> [Hold] {
        var pins: [Hold] = []
        for row in 0..<tracks.count where tracks[row].isOpen && !tracks[row].isTable {
            if let pin = pinWithinGrace(TrackID(rawValue: UInt32(row)), now: now) {
                pins.append(pin)
            }
        }
        return pins
    }

    /// Claims the oldest offset within its grace period; nil when all are past it.
    package mutating func pinWithinGrace(_ id: TrackID, now: MonotonicTime) -> Hold? {
        let row = Int(id.rawValue)
        let offset = graceWindows[row].offsetPastGrace(
            now: now, registrationGrace: registrationGrace)
        guard tracks[row].isOpen, offset < tracks[row].nextOffset else { return nil }
        let tail = tracks[row].pins.tail
        if tail != Self.none, holders[Int(tail)].offset == offset {
            holders[Int(tail)].claims += 1
            return Hold(track: id, holder: HolderID(rawValue: tail), offset: offset)
        }
        let holder = append(to: .pins, of: id.rawValue, offset: offset)
        return Hold(track: id, holder: holder, offset: offset)
    }

    /// One more claim on a holder that has at least one.
    package mutating func retain(_ hold: Hold) {
        precondition(holders[Int(hold.holder.rawValue)].claims > 0, "retained after its end")
        holders[Int(hold.holder.rawValue)].claims += 1
    }

    /// Gives a claim back.
    package mutating func release(_ hold: Hold) {
        let row = Int(hold.holder.rawValue)
        precondition(holders[row].claims > 0, "released more often than claimed")
        holders[row].claims -= 1
        guard holders[row].claims == 0 else { return }
        let track = tracks[Int(holders[row].track)]
        if track.isTable, track.isOpen { endedRows.append(hold) }
        remove(hold.holder.rawValue)
    }

    package func offset(of hold: Hold) -> Int64 { holders[Int(hold.holder.rawValue)].offset }

    /// Holders of all tracks: what the tracker's memory grows with.
    package var holderCount: Int { holderRows.count }

    // MARK: Lists

    private mutating func append(
        to list: List, of track: UInt32, offset: Int64
    ) -> HolderID {
        let tail = tracks[Int(track)][list].tail
        let holder = Holder(
            offset: offset, claims: 1, track: track, next: Self.none, previous: tail, kind: list)
        let row = holderRows.take()
        if Int(row) < holders.count {
            holders[Int(row)] = holder
        } else {
            holders.append(holder)
        }
        if tail == Self.none {
            tracks[Int(track)][list].head = row
        } else {
            holders[Int(tail)].next = row
        }
        tracks[Int(track)][list].tail = row
        tracks[Int(track)].holders += 1
        return HolderID(rawValue: row)
    }

    private mutating func remove(_ row: UInt32) {
        let holder = holders[Int(row)]
        let track = Int(holder.track)
        if holder.previous == Self.none {
            tracks[track][holder.kind].head = holder.next
        } else {
            holders[Int(holder.previous)].next = holder.next
        }
        if holder.next == Self.none {
            tracks[track][holder.kind].tail = holder.previous
        } else {
            holders[Int(holder.next)].previous = holder.previous
        }
        holderRows.give(row)
        tracks[track].holders -= 1
        recycleIfUnused(holder.track)
    }

    /// A closed track's number is used again only when no claim on it is left.
    private mutating func recycleIfUnused(_ track: UInt32) {
        guard !tracks[Int(track)].isOpen, tracks[Int(track)].holders == 0 else { return }
        freeTracks.append(track)
    }
}

extension OffsetTracker {
    /// Walks everything; for tests and simulation.
    package func checkInvariants() {
        var listed = 0
        for number in 0..<tracks.count where !freeTracks.contains(UInt32(number)) {
            let events = checkList(tracks[number].events, of: number)
            let pins = checkList(tracks[number].pins, of: number)
            precondition(
                events + pins == tracks[number].holders, "track \(number) miscounts its holders")
            listed += events + pins
        }
        precondition(listed == holderCount, "a holder stands in no list")
    }

    private func checkList(_ ends: Track.Ends, of track: Int) -> Int {
        var count = 0
        var row = ends.head
        var previous = Self.none
        while row != Self.none {
            let holder = holders[Int(row)]
            precondition(holder.claims > 0, "a holder without a claim is still listed")
            precondition(holder.track == UInt32(track), "a holder stands in another track's list")
            precondition(holder.previous == previous, "broken back link")
            precondition(holder.offset < tracks[track].nextOffset, "holds an offset not yet read")
            if previous != Self.none {
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
