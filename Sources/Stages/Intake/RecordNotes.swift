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

/// The notes of one topic, of which so many of each kind are counted.
package struct RecordNotes: Sendable {
    package private(set) var counts: [RecordNote: Int] = [:]

    private static let mostOfKind = 4

    mutating func add(_ note: RecordNote) {
        guard
            counts[note] != nil
                || counts.keys.count(where: { $0.kind == note.kind }) < Self.mostOfKind
        else { return }
        counts[note, default: 0] += 1
    }
}
