// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What records had that their topic's binding could not judge, or that their producer hardly meant:
/// counted, since none of it makes a record unreadable.
package struct RecordNote: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        /// A condition met a value of a type for which it never holds.
        case conditionType
        /// `changed` was asked of an update whose row before is not known.
        case unknownChange
        /// An attribute of a CloudEvent that is not what the format says was passed over.
        case attribute
        /// A member of an event that nobody reads looks like a push.
        case strayPush
        /// An event's own time is far after its record's and the worker's.
        case timeAhead
        /// A column that the database did not send is taken as missing, which decides something.
        case unsentColumn
    }

    package let kind: Kind
    /// The field, and what was there; nothing of the record's content.
    package let message: String
}

extension RecordNote {
    static func conditionType(_ field: FieldPath, met shape: String) -> RecordNote {
        RecordNote(
            kind: .conditionType,
            message: "a condition on \(field.text) met \(shape), for which it never holds")
    }

    static func unknownChange(_ field: FieldPath) -> RecordNote {
        RecordNote(
            kind: .unknownChange,
            message:
                "whether \(field.text) has changed cannot be known, so it was taken as changed: "
                + "updates come without the row before them, which needs REPLICA IDENTITY FULL or "
                + "what the database has in its place")
    }

    static func attribute(_ name: String) -> RecordNote {
        RecordNote(
            kind: .attribute,
            message:
                "the CloudEvents attribute \(name) is not what the format says, and was passed "
                + "over")
    }

    static func strayPush(_ name: String) -> RecordNote {
        RecordNote(
            kind: .strayPush,
            message: "the member \(name) beside subject is read by nobody: a push is written under "
                + "payload, as in {\"payload\":{\"aps\":{…}}}")
    }
}

extension RecordNote {
    static let timeAhead = RecordNote(
        kind: .timeAhead,
        message:
            "time is more than an hour after both its record and the worker's clock, and the "
            + "record's time was taken in its place: check the producer's clock")

    static func unsentColumn(_ field: FieldPath) -> RecordNote {
        RecordNote(
            kind: .unsentColumn,
            message:
                "the database did not send \(field.text), since it has not changed, so that it is "
                + "taken as missing: PostgreSQL sends it with REPLICA IDENTITY FULL")
    }
}

/// The notes of one topic. All are counted by kind, and by message the first few of each kind.
package struct RecordNotes: Sendable {
    package private(set) var counts: [RecordNote: Int] = [:]
    package private(set) var totals: [RecordNote.Kind: Int] = [:]
    /// How many records were left out for want of a condition's field, by the condition's position. That is
    /// ordinary, unless it is all of them.
    package private(set) var absences: [Int: Absence] = [:]

    package struct Absence: Sendable {
        package let field: String
        package fileprivate(set) var count = 0
    }

    mutating func addAbsence(ofCondition number: Int, on field: FieldPath) {
        absences[number, default: Absence(field: field.text)].count += 1
    }

    private static let mostOfKind = 4

    mutating func add(_ note: RecordNote) {
        totals[note.kind, default: 0] += 1
        guard
            counts[note] != nil
                || counts.keys.count(where: { $0.kind == note.kind }) < Self.mostOfKind
        else { return }
        counts[note, default: 0] += 1
    }
}
