// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// Finds the members of a record's object by field. A member that is null counts as absent; of
/// duplicates the last wins. The object is read once and nothing is allocated.
struct MemberReader<Field: RecordField>: ~Copyable {
    /// The values, indexed by the field's raw value, which is below `RecordLimits.fieldsMax`.
    private var values = InlineArray<24, JSONValue?>(repeating: nil)

    init(_ object: JSONObject) {
        for (name, value) in object {
            guard let field = Field.table.find(name) else { continue }
            values[Int(field.rawValue)] = value.isNull ? nil : value
        }
    }

    /// - Throws: an error that names `field`, unless the value is an object.
    init(_ value: JSONValue, in field: some RecordField) throws(UnreadableRecord) {
        guard let object = value.object else { throw .field(field.name, "an object") }
        self.init(object)
    }

    func optional(_ field: Field) -> JSONValue? { values[Int(field.rawValue)] }

    func required(_ field: Field) throws(UnreadableRecord) -> JSONValue {
        guard let value = optional(field) else { throw .missing(field.name, "it is required") }
        return value
    }

    /// Checks the version in a format where it must be written.
    func checkVersion(_ field: Field) throws(UnreadableRecord) {
        guard let version = optional(field) else { throw .missing(field.name, "write 1") }
        try version.checkVersion()
    }

    func text(
        _ field: Field, bytes range: ClosedRange<Int>
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        try required(field).text(field, bytes: range)
    }

    func integer(
        _ field: Field, in range: ClosedRange<Int64>
    ) throws(UnreadableRecord) -> Int64 {
        try required(field).integer(field, in: range)
    }

    func instant(_ field: Field) throws(UnreadableRecord) -> WallTime {
        try required(field).instant(field)
    }

    func optionalText(
        _ field: Field, bytes range: ClosedRange<Int>
    ) throws(UnreadableRecord) -> String? {
        guard let value = optional(field) else { return nil }
        return String(try value.text(field, bytes: range))
    }

    func optionalInteger(
        _ field: Field, in range: ClosedRange<Int64>
    ) throws(UnreadableRecord) -> Int64? {
        guard let value = optional(field) else { return nil }
        return try value.integer(field, in: range)
    }

    func optionalInstant(_ field: Field) throws(UnreadableRecord) -> WallTime? {
        guard let value = optional(field) else { return nil }
        return try value.instant(field)
    }

    /// The bytes that the writer put under either name; nil where neither member is there.
    func bytes(
        _ field: Field, base64: Field, bytesMax: Int
    ) throws(UnreadableRecord) -> [UInt8]? {
        if let value = optional(field) { return Array(try value.text(field, bytes: 0...bytesMax)) }
        guard let value = optional(base64) else { return nil }
        guard let text = value.string, text.count <= Base64.digits(bytes: bytesMax),
            let bytes = Base64.decode(text), bytes.count <= bytesMax
        else { throw .field(base64.name, "base64 of at most \(bytesMax) bytes") }
        return bytes
    }
}

/// Typed reading of members, with messages that name the member and never quote it.
extension JSONValue {
    func text(
        _ field: some RecordField, bytes range: ClosedRange<Int>
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard let text = string, range.contains(text.count) else {
            throw .field(
                field.name, "a string of \(range.lowerBound) to \(range.upperBound) bytes")
        }
        guard !hasLoneSurrogate else { throw .field(field.name, "without lone surrogates") }
        return text
    }

    /// A part of the key of a registration.
    func keyPart(_ field: some RecordField) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard let text = string, RecordKey.isPart(text) else {
            throw .field(field.name, RecordKey.partDemand)
        }
        return text
    }

    func integer(
        _ field: some RecordField, in range: ClosedRange<Int64>
    ) throws(UnreadableRecord) -> Int64 {
        guard let integer, range.contains(integer) else {
            throw .field(
                field.name, "an integer from \(range.lowerBound) to \(range.upperBound)")
        }
        return integer
    }

    func instant(_ field: some RecordField) throws(UnreadableRecord) -> WallTime {
        guard let text = string, let instant = WallTime(rfc3339: text) else {
            throw .field(
                field.name,
                "an RFC 3339 instant such as 2026-11-21T06:12:00.123Z, and it is \(shape)"
                    + (RecordMoment.unit(of: self).map { ": \($0)?" } ?? ""))
        }
        return instant
    }

    func environment(
        _ field: some RecordField
    ) throws(UnreadableRecord) -> PushEnvironment {
        guard let text = string, let environment = PushEnvironment(text) else {
            throw .field(field.name, "production or development")
        }
        return environment
    }

    func elements(_ field: some RecordField) throws(UnreadableRecord) -> JSONArray {
        guard let array else { throw .field(field.name, "an array") }
        return array
    }

    /// Checks that the version is the only one there is.
    func checkVersion() throws(UnreadableRecord) {
        guard integer == RecordLimits.version else {
            throw UnreadableRecord(
                .unknownVersion, "v is not 1: the record was written for a later release")
        }
    }
}

// MARK: Words

extension PushEnvironment {
    init?(_ name: UnsafeRawBufferPointer) {
        if name.equals("production") {
            self = .production
        } else if name.equals("development") || name.equals("sandbox") {
            self = .development
        } else {
            return nil
        }
    }

    /// The words that readers accept.
    static let wordsRead = allCases.map(\.name) + ["sandbox"]
    /// The words that writers write.
    static let wordsWritten = allCases.map(\.name)
}

extension TokenClass {
    static let words = allCases.map(\.name)
    private static let table = NameTable(allCases.map { ($0.name, $0) })

    init?(_ word: UnsafeRawBufferPointer) {
        guard let known = Self.table.find(word) else { return nil }
        self = known
    }
}

extension PushType {
    private static let table = NameTable(allTypes.map { ($0.name, $0) })

    package init?(_ word: UnsafeRawBufferPointer) {
        guard let known = Self.table.find(word) else { return nil }
        self = known
    }
}

extension ExpirationRule {
    /// The word for it in records.
    var word: String {
        switch self {
        case .none: "none"
        case .immediate: "immediate"
        case .deadline: "deadline"
        }
    }

    /// - Parameter rules: those that the record may name.
    init(
        _ value: JSONValue, among rules: [ExpirationRule], in field: some RecordField
    ) throws(UnreadableRecord) {
        for rule in rules {
            if let text = value.string, text.elementsEqual(rule.word.utf8) {
                self = rule
                return
            }
        }
        throw .field(field.name, "one of \(rules.map(\.word).joined(separator: ", "))")
    }
}

extension String {
    init(_ bytes: UnsafeRawBufferPointer) { self.init(decoding: bytes, as: UTF8.self) }
}
