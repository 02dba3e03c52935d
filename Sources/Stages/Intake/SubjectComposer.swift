// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

/// Finds a record's subject outside its event: in the key, or by a template.
struct SubjectComposer: ~Copyable {
    /// The composed subjects of one record and its collapse identifier, valid until the next `begin`.
    private var composed = FixedBytes(
        capacity: RecordLimits.subjectBytesMax * (TopicBinding.subjectsMax + 1))

    /// The subjects of the record that is being composed.
    private let added = UnsafeMutableBufferPointer<UnsafeRawBufferPointer>.allocate(
        capacity: TopicBinding.subjectsMax)
    private var count = 0

    deinit { added.deallocate() }

    /// Those that were added since `begin`.
    var subjects: UnsafeBufferPointer<UnsafeRawBufferPointer> {
        UnsafeBufferPointer(rebasing: added[..<count])
    }

    mutating func add(_ subject: UnsafeRawBufferPointer) {
        added[count] = subject
        count += 1
    }

    static func subject(
        inKeyOf record: EventRecord
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard let key = record.key, key.count > 0 else {
            throw UnreadableRecord(
                .missingSubject, "the record has no key; produce with the subject as the key")
        }
        guard key.count <= RecordLimits.subjectBytesMax else { throw tooLong }
        return key
    }

    private static var tooLong: UnreadableRecord {
        UnreadableRecord(
            .invalidSubject, "a subject has at most \(RecordLimits.subjectBytesMax) bytes")
    }

    /// Composes a further subject of a record; `begin` comes before the first.
    /// - Parameter document: what the template's fields are read from.
    mutating func compose(
        _ template: SubjectTemplate, from record: EventRecord, _ document: RecordDocument?,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        let start = composed.bytes.count
        for part in template.parts {
            let fits =
                switch part {
                case .literal(let text): text.withUnsafeBytes { composed.append($0) }
                case .key:
                    composed.append(
                        try Self.found(
                            record.key,
                            document?.key == nil
                                ? "the record's key"
                                : "a key that is a string or an integer, or one of its fields: {key:/id}"
                        ))
                case .header(let name):
                    composed.append(try Self.found(header(name), "header " + name))
                case .field(let path): try append(document?[path], named: path.text)
                }
            guard fits, composed.bytes.count - start <= RecordLimits.subjectBytesMax else {
                throw Self.tooLong
            }
        }
        assert(
            composed.bytes.count > start,
            "a subject composed from a template has at least one byte")
        return UnsafeRawBufferPointer(rebasing: composed.bytes[start...])
    }

    mutating func begin() {
        composed.removeAll()
        count = 0
    }

    private static func found(
        _ bytes: UnsafeRawBufferPointer?, _ place: String
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard let bytes, bytes.count > 0 else {
            throw UnreadableRecord(.missingSubject, "the subject template needs \(place)")
        }
        return bytes
    }

    /// Appends a string or an integer; a value of any other type there is a mistake.
    private mutating func append(
        _ value: JSONValue?, named pointer: String
    ) throws(UnreadableRecord) -> Bool {
        if var text = value?.integerText {
            return text.withUTF8 { composed.append(UnsafeRawBufferPointer($0)) }
        }
        guard !(value?.hasLoneSurrogate ?? false) else {
            throw UnreadableRecord(
                .invalidSubject, "\(pointer) has half of a surrogate pair, which is no character")
        }
        return composed.append(
            try Self.found(
                value?.string, "a string or an integer at \(pointer)\(Self.shape(of: value))"))
    }

    /// What is there instead; nothing of its content.
    private static func shape(of value: JSONValue?) -> String {
        guard let value, value.string == nil else { return "" }
        return ", where the record has \(value.shape)"
    }
}
