// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
package import SchemaCodecs
internal import Simdjson

/// Records whose keys or values were written with a schema, in Confluent's wire format. They become
/// the JSON that fields are read from.
extension EventDecoder {
    /// The schema that must be known before anything can be told of the record; nil if there is none,
    /// and then `decode` needs none either, as long as no other record comes between.
    package mutating func awaitedSchema(of record: EventRecord) -> AwaitedSchema? {
        guard let number = bindings[record.binding].fields, fieldBindings[number].hasSchema else {
            return nil
        }
        schemas.begin()
        let needsKey = bindings[record.binding].details.needsKey
        for part in RecordPart.allCases where part == .value || needsKey {
            guard let language = fieldBindings[number].schema(of: part),
                let bytes = record.bytes(of: part), bytes.count > 0,
                let awaited = schemas.awaited(
                    bytes, as: language, projection: part.projection(of: number),
                    lookup: lookup)
            else { continue }
            return awaited
        }
        return nil
    }

    /// The record with JSON for a value, and plain bytes for a key, that were written with a schema.
    /// - Returns: also the key as JSON, where it is read. That it cannot be matters only once a
    ///   condition asks for it, or the record is an event.
    mutating func plain(
        _ record: EventRecord, number: Int, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> (EventRecord, key: Result<JSONValue?, UnreadableRecord>) {
        var record = record
        var key: Result<JSONValue?, UnreadableRecord> = .success(nil)
        if bindings[record.binding].details.needsKey {
            do throws(UnreadableRecord) {
                let json = try self.key(of: record, number: number, header)
                if fieldBindings[number].keySchema != nil { record.key = keyText(json) }
                key = .success(json)
            } catch {
                key = .failure(error)
            }
        }
        if fieldBindings[number].readsValue || fieldBindings[number].decode == .debezium,
            let json = try json(of: .value, record, number: number, header)
        {
            record.value = json
        }
        return (record, key)
    }

    /// - Returns: nil if the part is not there, or was written without a schema.
    private mutating func json(
        of part: RecordPart, _ record: EventRecord, number: Int, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer? {
        guard let language = fieldBindings[number].schema(of: part),
            let bytes = record.bytes(of: part), bytes.count > 0
        else { return nil }
        do throws(UndecodableRecord) {
            guard header(part.schemaHeader) == nil else {
                throw SchemaFrame.refusal(of: part.schemaHeader)
            }
            let decoded = try schemas.decode(
                bytes, as: language, projection: part.projection(of: number), lookup: lookup)
            switch decoded {
            case .json(let json): return json
            case .waiting(let schema, let cause):
                throw UndecodableRecord(
                    .unknownSchema,
                    "schema \(schema) is not here yet: \(cause ?? "the registry is being asked")")
            }
        } catch {
            // Only what cannot be read is asked for the headers of other registries.
            throw UnreadableRecord(SchemaFrame.refusal(ofHeaders: header) ?? error, in: part)
        }
    }

    private mutating func key(
        of record: EventRecord, number: Int, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> JSONValue? {
        guard let json = try keyJSON(of: record, number: number, header), json.count > 0 else {
            return nil
        }
        guard var value = try? keyParser.parse(json) else {
            throw KeyFormat.noJSON(json, most: keyParser.bytesMax)
        }
        let (decode, format) = (fieldBindings[number].decode, fieldBindings[number].keySchema)
        // With schemas enabled Connect's converter puts the key under `payload`.
        if decode == .debezium || format == .json { value = value.connectPayload }
        return decode == .debezium ? rows.key(value) : value
    }

    /// A key that somebody has typed, as the records of a topic have it.
    package func key(typed text: [UInt8], of binding: Int) -> [UInt8] {
        guard let number = bindings[binding].fields else { return text }
        return fieldBindings[number].keySchema?.key(typed: text) ?? text
    }

    /// The key as JSON, as far as its format tells.
    private mutating func keyJSON(
        of record: EventRecord, number: Int, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer? {
        guard let key = record.key, key.count > 0 else { return nil }
        switch fieldBindings[number].keySchema {
        case .schema: return try json(of: .key, record, number: number, header)
        case .integer(let count):
            keyDigits.removeAll()
            try KeyFormat.readInteger(key, bytes: count, into: &keyDigits)
            return keyDigits.bytes
        case .json, nil: return key
        }
    }

    /// What `{key}` means for a key with a schema: a string, or the digits of an integer.
    private mutating func keyText(_ key: JSONValue?) -> UnsafeRawBufferPointer? {
        if var text = key?.integerText {
            keyDigits.removeAll()
            text.withUTF8 { _ = keyDigits.append(UnsafeRawBufferPointer($0)) }
            return keyDigits.bytes
        }
        return key?.string
    }

    /// What is wanted of keys and values by each of the bindings that read fields.
    static func projections(of bindings: [TopicBinding]) -> [Projection] {
        bindings.flatMap { binding in
            RecordPart.allCases.map { binding.projection(of: $0) }
        }
    }
}

/// A part of a record that a schema may belong to.
private enum RecordPart: Int, CaseIterable {
    case key, value

    /// Its place among the decoder's projections.
    func projection(of binding: Int) -> Int { binding * Self.allCases.count + rawValue }

    var schemaHeader: String {
        switch self {
        case .key: SchemaFrame.keyHeader
        case .value: SchemaFrame.valueHeader
        }
    }
}

extension EventRecord {
    fileprivate func bytes(of part: RecordPart) -> UnsafeRawBufferPointer? {
        switch part {
        case .key: key
        case .value: value
        }
    }
}

extension TopicBinding {
    fileprivate func schema(of part: RecordPart) -> SchemaLanguage? {
        switch part {
        case .key: keySchema?.language
        case .value: valueSchema
        }
    }

    fileprivate func projection(of part: RecordPart) -> Projection {
        var pointers: [String]
        switch part {
        case .key:
            // A key that is not an object is read as it is.
            pointers =
                fields.contains { $0.version == .key }
                ? fields.filter { $0.version == .key }.map(\.pointerText) : [""]
        case .value:
            pointers = fields.filter { $0.version != .key }.map(\.pointerText)
            if decode == .debezium {
                let rows = pointers.isEmpty ? [""] : pointers
                pointers = ["/op"] + rows.flatMap { ["/before" + $0, "/after" + $0] }
            }
        }
        return Projection(pointers: pointers) ?? .whole
    }
}

extension UnreadableRecord {
    fileprivate init(_ problem: UndecodableRecord, in part: RecordPart) {
        let code: UnreadableCode =
            switch problem.code {
            case .frame: .schemaFrame
            case .unknownSchema: .unknownSchema
            case .unusableSchema: .unusableSchema
            case .content: .schemaMismatch
            }
        self.init(code, "the record's \(part): \(problem.message)")
    }
}
