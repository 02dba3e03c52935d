// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// Writes one JSON object member by member, in the order of the calls. Members are named by the
/// fields of their record; one whose value is nil is left out. For cold paths.
struct ObjectWriter<Field: RecordField> {
    fileprivate var json = JSONWriter()

    mutating func member(_ field: Field, _ value: String?) {
        guard let value else { return }
        json.name(field.name)
        json.string(value)
    }

    mutating func member(_ field: Field, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        json.name(field.name)
        json.raw(value.description.utf8)
    }

    mutating func member(_ field: Field, _ value: WallTime?) { member(field, value?.rfc3339) }

    /// Writes `true`, or leaves the member out for false.
    mutating func member(_ field: Field, flag: Bool) {
        if flag { member(field, raw: Array("true".utf8)) }
    }

    mutating func member(_ field: Field, raw value: [UInt8]?) {
        guard let value else { return }
        json.name(field.name)
        json.raw(value)
    }

    /// Writes bytes as a string where they are UTF-8, else as base64 under the name of `base64`.
    mutating func member(_ field: Field, bytes: [UInt8]?, base64: Field) {
        guard let bytes else { return }
        if let text = String(validating: bytes, as: UTF8.self) {
            member(field, text)
        } else {
            member(base64, Base64.encode(bytes))
        }
    }

    /// Writes an array of strings, or leaves the member out where it would be empty.
    mutating func member(_ field: Field, array strings: [String]) {
        guard !strings.isEmpty else { return }
        json.name(field.name)
        json.array { array in for string in strings { array.string(string) } }
    }

    mutating func member<Inner: RecordField>(
        _ field: Field, of fields: Inner.Type, _ body: (inout ObjectWriter<Inner>) -> Void
    ) {
        json.name(field.name)
        json.object(of: fields, body)
    }

    /// Writes an array with an object for each element, even an empty one.
    mutating func member<Inner: RecordField, Element>(
        _ field: Field, array elements: [Element], of fields: Inner.Type,
        _ body: (Element, inout ObjectWriter<Inner>) -> Void
    ) {
        json.name(field.name)
        json.array { array in
            for element in elements { array.object(of: fields) { body(element, &$0) } }
        }
    }
}

/// Writes one JSON document.
struct JSONWriter {
    private var bytes: [UInt8] = []
    private var needsComma = false

    /// Writes a whole document that is one object.
    static func object<Field: RecordField>(
        of fields: Field.Type, _ body: (inout ObjectWriter<Field>) -> Void
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(of: fields, body)
        return writer.bytes
    }

    /// Writes a whole document that is an array with an object for each element.
    static func array<Field: RecordField, Element>(
        _ elements: [Element], of fields: Field.Type,
        _ body: (Element, inout ObjectWriter<Field>) -> Void
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.array { array in
            for element in elements { array.object(of: fields) { body(element, &$0) } }
        }
        return writer.bytes
    }

    fileprivate mutating func object<Field: RecordField>(
        of fields: Field.Type, _ body: (inout ObjectWriter<Field>) -> Void
    ) {
        enclose("{", "}") { json in
            // Swapping moves the bytes there and back; assigning would copy them for each object.
            var writer = ObjectWriter<Field>()
            swap(&writer.json, &json)
            body(&writer)
            swap(&writer.json, &json)
        }
    }

    fileprivate mutating func array(_ body: (inout JSONWriter) -> Void) {
        enclose("[", "]", body)
    }

    /// The name of the member whose value is written next.
    fileprivate mutating func name(_ name: String) {
        assert(bytes.last != UInt8(ascii: ":"), "the member before has a value")
        element { $0.text(name) }
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    fileprivate mutating func string(_ value: String) { element { $0.text(value) } }

    fileprivate mutating func raw(_ json: some Sequence<UInt8>) {
        element { $0.bytes.append(contentsOf: json) }
    }

    private mutating func enclose(
        _ open: Unicode.Scalar, _ close: Unicode.Scalar, _ body: (inout JSONWriter) -> Void
    ) {
        element { $0.bytes.append(UInt8(ascii: open)) }
        needsComma = false
        body(&self)
        bytes.append(UInt8(ascii: close))
        needsComma = true
    }

    private mutating func element(_ write: (inout JSONWriter) -> Void) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        write(&self)
        needsComma = true
    }

    private mutating func text(_ text: String) {
        var text = text
        text.withUTF8 { JSONString.append(UnsafeRawBufferPointer($0), to: &bytes) }
    }
}
