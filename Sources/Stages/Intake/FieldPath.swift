// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

/// A field of a producer's record: a JSON pointer such as `/order/id` into its value, or into its
/// key after `key:`. In a change of a database's row it may follow `before:` or `after:`.
package struct FieldPath: Sendable, Hashable {
    enum Version: Sendable, Hashable {
        /// The document; of a change, the row after it, or the one that was deleted.
        case current
        case before, after
        case key

        static let byPrefix: KeyValuePairs<String, Version> = [
            "before:": .before, "after:": .after, "key:": .key,
        ]
    }

    /// The path as it was written.
    package let text: String
    let version: Version
    let pointer: JSONPointer

    /// Nil unless the text is a path.
    package init?(_ text: String) {
        let named = Version.byPrefix.first { text.hasPrefix($0.key) }
        let rest = text.dropFirst(named?.key.count ?? 0)
        version = named?.value ?? .current
        guard rest.hasPrefix("/"), let pointer = JSONPointer(String(rest)) else { return nil }
        self.text = text
        self.pointer = pointer
    }

    /// The JSON pointer alone.
    var pointerText: String {
        String(text.drop { $0 != "/" })
    }

    /// Whether only a change of a row has it.
    var needsChange: Bool { version == .before || version == .after }
}

/// A producer's record whose fields templates and conditions read.
struct RecordDocument {
    /// Nil where no field of the record's value is read.
    let current: JSONValue?
    var before: JSONValue?
    var after: JSONValue?
    var key: JSONValue?

    init(_ current: JSONValue?) { self.current = current }

    /// The field; nil if it is not there or null.
    subscript(path: FieldPath) -> JSONValue? {
        let root: JSONValue? =
            switch path.version {
            case .current: current
            case .before: before
            case .after: after
            case .key: key
            }
        guard let found = root?[path.pointer], !found.isNull else { return nil }
        return found
    }
}

// MARK: Change data capture

/// What happened to a row, as Debezium names it in `op`.
package enum RowOperation: String, CaseIterable, Sendable {
    case create, update, delete
    /// A row of the snapshot that a connector takes when it starts.
    case read

    fileprivate init?(letter: UnsafeRawBufferPointer) {
        guard letter.count == 1 else { return nil }
        switch letter[0] {
        case UInt8(ascii: "c"): self = .create
        case UInt8(ascii: "u"): self = .update
        case UInt8(ascii: "d"): self = .delete
        case UInt8(ascii: "r"): self = .read
        default: return nil
        }
    }
}

extension RecordDocument {
    /// Reads Debezium's envelope, with or without its schema.
    /// - Returns: nil for what is no change of a row (a truncated table, a logical message) or one of
    ///   another operation.
    /// - Throws: if it is no such envelope.
    static func change(
        _ object: JSONObject, of operations: Set<RowOperation>
    ) throws(UnreadableRecord) -> RecordDocument? {
        // With schemas enabled Connect's converter puts the envelope under `payload`.
        let envelope = object["op"] == nil ? object["payload"]?.object ?? object : object
        guard let word = envelope["op"]?.string else {
            throw UnreadableRecord(
                .notChange,
                "there is no op: is this Debezium's envelope, or has a transform unwrapped it? Then "
                    + "say decode: json")
        }
        guard let operation = RowOperation(letter: word), operations.contains(operation) else {
            return nil
        }
        func row(_ name: StaticString) -> JSONValue? {
            envelope[name].flatMap { $0.isNull ? nil : $0 }
        }
        let (before, after) = (row("before"), row("after"))
        guard let current = operation == .delete ? before : after else {
            throw UnreadableRecord(
                .notChange,
                operation == .delete
                    ? "a deleted row has no before: the table needs REPLICA IDENTITY FULL or what "
                        + "its database has in its place"
                    : "a changed row has no after")
        }
        var document = RecordDocument(current)
        document.before = before
        document.after = after
        return document
    }
}
