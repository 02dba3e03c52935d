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
    /// Its outermost step alone: the column of a row.
    let column: JSONPointer

    /// Nil unless the text is a path.
    package init?(_ text: String) {
        let named = Version.byPrefix.first { text.hasPrefix($0.key) }
        let rest = text.dropFirst(named?.key.count ?? 0)
        version = named?.value ?? .current
        // `key:` alone is the whole key.
        guard rest.hasPrefix("/") || rest.isEmpty && version == .key,
            let pointer = JSONPointer(String(rest))
        else { return nil }
        self.text = text
        self.pointer = pointer
        column = pointer.first
    }

    /// The JSON pointer alone.
    var pointerText: String {
        String(text.drop { $0 != "/" })
    }

    fileprivate var isWhole: Bool { pointer.steps.isEmpty }

    /// Whether only a change of a row has it.
    var needsChange: Bool { version == .before || version == .after }
}

/// A producer's record whose fields templates and conditions read.
struct RecordDocument {
    /// Nil where no field of the record's value is read.
    var current: JSONValue?
    var before: JSONValue?
    var after: JSONValue?
    var key: JSONValue?
    /// Whether it is a change of a row, whose values connectors may wrap.
    var isChange = false
    /// Whether it is an update of which the row before it is not known.
    var lacksBefore = false
    /// Why there is no current row.
    var absence: UnreadableRecord?

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
        guard isChange || path.version == .key else { return found }
        return isChange ? value(found) : path.isWhole ? found.connectPayload : found
    }

    /// Whether the database did not send the field, or the column that it is inside of.
    func isUnsent(_ path: FieldPath) -> Bool {
        guard isChange, path.version != .key,
            let row = path.version == .before ? before : path.version == .after ? after : current
        else { return false }
        return (row[path.pointer] ?? row[path.column])?.unwrapped.isUnavailable ?? false
    }

    private func value(_ found: JSONValue) -> JSONValue? {
        let value = found.unwrapped
        return value.isNull || value.isUnavailable ? nil : value
    }
}

extension JSONValue {
    /// What Connect's converter has put beside its schema.
    var connectPayload: JSONValue {
        guard let object, object["schema"] != nil, let payload = object["payload"] else {
            return self
        }
        return payload
    }
}

// MARK: Change data capture

/// What happened to a row, as Debezium names it in `op`.
package enum RowOperation: String, CaseIterable, Sendable {
    case create, update, delete
    /// A row of the snapshot that a connector takes when it starts.
    case read

    init?(letter: UnsafeRawBufferPointer) {
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
    /// - Parameter text: what the object was read from.
    /// - Returns: nil for what is no change of a row (a truncated table, a logical message) or one of
    ///   another operation.
    /// - Throws: if it is no such envelope.
    static func change(
        _ object: JSONObject, in text: UnsafeRawBufferPointer, of operations: Set<RowOperation>,
        _ reader: inout RowReader
    ) throws(UnreadableRecord) -> RecordDocument? {
        reader.begin(text)
        let inner = enveloped(object)
        let envelope = inner ?? object
        guard let word = envelope["op"]?.string else { throw notChange(object) }
        guard let operation = RowOperation(letter: word), operations.contains(operation) else {
            return nil
        }
        let schema = inner == nil ? nil : object["schema"]?.object
        var document: RecordDocument
        let before = try row(.before, envelope["before"], schema, &reader)
        let after = try row(.after, envelope["after"], schema, &reader)
        document = RecordDocument(operation == .delete ? before : after)
        document.before = before
        document.after = after
        document.isChange = true
        document.lacksBefore = operation == .update && before == nil
        if document.current == nil { document.absence = absence(operation) }
        return document
    }

    /// With schemas enabled Connect's converter puts the envelope under `payload`.
    private static func enveloped(_ object: JSONObject) -> JSONObject? {
        object["op"] == nil ? object["payload"]?.object : nil
    }

    /// What a change says that has happened: an operation, or Debezium's letter for another one.
    static func operation(of object: JSONObject) -> String {
        guard let word = (enveloped(object) ?? object)["op"]?.string else { return "none" }
        return RowOperation(letter: word)?.rawValue
            ?? String(decoding: word.prefix(8), as: UTF8.self).printable
    }

    private static func row(
        _ row: RowReader.Row, _ value: JSONValue?, _ schema: JSONObject?,
        _ reader: inout RowReader
    ) throws(UnreadableRecord) -> JSONValue? {
        guard let value, !value.isNull else { return nil }
        guard let found = reader.row(row, value, schema: schema) else {
            throw UnreadableRecord(
                .notChange, "the row \(row) the change is \(value.shape), and no object")
        }
        return found.object.map(\.isEmpty) ?? false ? nil : found
    }

    private static func absence(_ operation: RowOperation) -> UnreadableRecord {
        UnreadableRecord(
            .notChange,
            operation == .delete
                ? "a deleted row has no before: the table needs REPLICA IDENTITY FULL or what "
                    + "its database has in its place; or take the subject from the key, {key:/id}"
                : "a changed row has no after: have the connector write whole documents (MongoDB: "
                    + "capture.mode: change_streams_update_full); or take the subject from the key, "
                    + "{key:/id}")
    }

    /// What Debezium writes beside changes, to topics of their own.
    private static func connectorRecord(_ object: JSONObject) -> String? {
        let record = object["payload"]?.object ?? object
        if record["status"] != nil, record["id"] != nil { return "a transaction's begin or end" }
        if record["ddl"] != nil || record["tableChanges"] != nil { return "a change of the schema" }
        var members = record.makeIterator()
        if let first = members.next(), first.key.equals("ts_ms"), members.next() == nil {
            return "a heartbeat"
        }
        return nil
    }

    /// What the record is instead, as far as that can be told.
    private static func notChange(_ object: JSONObject) -> UnreadableRecord {
        if object["data"] != nil, object["database"] != nil, object["table"] != nil {
            return UnreadableRecord(
                .notChange,
                object["pkNames"] != nil || object["isDdl"] != nil
                    ? "this is Canal's format, whose rows are a list: have it write Debezium's, or say "
                        + "decode: json and read /data/0"
                    : "this is Maxwell's format: say decode: json and read /data, /old and /type")
        }
        if object["data"] != nil, object["metadata"]?.object?["operation"] != nil {
            return UnreadableRecord(
                .notChange,
                "this is the format of AWS DMS: say decode: json and read /data and "
                    + "/metadata/operation")
        }
        if let other = connectorRecord(object) {
            return UnreadableRecord(
                .notChange, "this is \(other) of the connector: leave its topic out of kafka.events"
            )
        }
        return UnreadableRecord(
            .notChange,
            "there is no op: is this Debezium's envelope, or has a transform unwrapped it? Then "
                + "say decode: json")
    }
}
