// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
internal import PushModel

/// The notes that the owners before have left of this worker's partitions. Below a note's ended
/// offset an event is pushed only to newcomers: to tokens whose registrations the owner before had
/// not applied.
struct InheritedNotes {
    private var rows: [Row] = []
    /// How many partitions have not been read up to their notes' ended offsets.
    private var unread = 0

    private struct Row {
        let id: AssignmentID
        let note: CommitNote
        var isUnread: Bool
        /// What `newcomers` was made of, and when.
        var newcomers = Newcomers.none
        var madeAt: [Int64]?
    }

    /// Whom the owner before has told of an event: all but newcomers, where there is progress those
    /// before it alone.
    struct Told {
        let newcomers: Newcomers
        let progress: FanOutProgress?
    }

    /// The tokens that an owner before had not heard of.
    enum Newcomers {
        case none
        case some([SubjectID: [AudienceEntry]])
        /// More registrations have come since than are kept.
        case unknown
    }

    /// Whether any record may be below its partition's note.
    var isAwaitingAny: Bool { unread > 0 }

    mutating func assigned(_ id: AssignmentID, _ note: CommitNote, startOffset: Int64) {
        let isUnread = startOffset < note.end
        rows.append(Row(id: id, note: note, isUnread: isUnread))
        unread += isUnread ? 1 : 0
    }

    mutating func unassigned(_ id: AssignmentID) {
        guard let index = rows.firstIndex(where: { $0.id == id }) else { return }
        unread -= rows[index].isUnread ? 1 : 0
        rows.remove(at: index)
    }

    func note(of id: AssignmentID) -> CommitNote? { rows.first { $0.id == id }?.note }

    /// Whom the owner before has told of this record; nil if it is for all tokens.
    mutating func told(
        _ id: AssignmentID, offset: Int64, _ registrations: borrowing RecentRegistrations,
        _ audience: borrowing Audience
    ) -> Told? {
        guard let index = rows.firstIndex(where: { $0.id == id && $0.isUnread }) else { return nil }
        let note = rows[index].note
        if offset + 1 >= note.end {
            rows[index].isUnread = false
            unread -= 1
        }
        let progress = note.spread.first { $0.offset == offset }?.progress
        guard offset < note.endedOffset || progress != nil else { return nil }
        if rows[index].madeAt != registrations.cursor {
            rows[index].madeAt = registrations.cursor
            rows[index].newcomers = Self.newcomers(
                since: rows[index].note.registrations, registrations, audience)
        }
        return Told(
            newcomers: rows[index].newcomers, progress: offset < note.endedOffset ? nil : progress)
    }

    private static func newcomers(
        since cursor: [Int64], _ registrations: borrowing RecentRegistrations,
        _ audience: borrowing Audience
    ) -> Newcomers {
        if registrations.isUpToDate(with: cursor) { return .none }
        guard registrations.isComplete(since: cursor) else { return .unknown }
        var lists: [SubjectID: Set<AudienceEntry>] = [:]
        registrations.forEach(since: cursor) { registration in
            audience.forEachEntry(of: registration) { row in
                lists[row.subject, default: []].insert(row.entry)
            }
        }
        return .some(lists.mapValues(Array.init))
    }
}
