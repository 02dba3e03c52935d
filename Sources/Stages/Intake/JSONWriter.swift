// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// Writes one JSON document, member by member. For cold paths.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// The whole document as one object.
    static func object(_ body: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(body)
        return writer.bytes
    }

    mutating func object(_ body: (inout JSONWriter) -> Void) { enclose("{", "}", body) }

    mutating func array(_ body: (inout JSONWriter) -> Void) { enclose("[", "]", body) }

    /// The name of the member whose value is written next.
    mutating func name(_ name: String) {
        element { $0.text(name) }
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    mutating func string(_ value: String) { element { $0.text(value) } }

    mutating func raw(_ json: some Sequence<UInt8>) {
        element { $0.bytes.append(contentsOf: json) }
    }

    // MARK: Members; one whose value is nil is left out.

    mutating func member(_ name: String, _ value: String?) {
        guard let value else { return }
        self.name(name)
        string(value)
    }

    mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        self.name(name)
        raw(value.description.utf8)
    }

    mutating func member(_ name: String, _ value: WallTime?) { member(name, value?.rfc3339) }

    mutating func member(_ name: String, raw json: [UInt8]?) {
        guard let json else { return }
        self.name(name)
        raw(json)
    }

    /// Bytes as a string where they are UTF-8, else as base64 under `name` + `Base64`.
    mutating func member(_ name: String, bytes: [UInt8]?) {
        guard let bytes else { return }
        if let text = String(validating: bytes, as: UTF8.self) {
            member(name, text)
        } else {
            member(name + "Base64", Base64.encode(bytes))
        }
    }

    mutating func member(_ name: String, array strings: [String]) {
        guard !strings.isEmpty else { return }
        self.name(name)
        array { array in for string in strings { array.string(string) } }
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
        text.withUTF8 { JSONText.append(UnsafeRawBufferPointer($0), to: &bytes) }
    }
}

/// RFC 4648 with padding.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for digit in 0..<4 {
                let padding = digit > group.count
                text.append(padding ? UInt8(ascii: "=") : alphabet[bits >> (18 - 6 * digit) & 63])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for anything but whole groups of digits, padded where the last is short.
    static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: text.count, by: 4) {
            let group = text[start..<start + 4]
            let digits = group.prefix { $0 != UInt8(ascii: "=") }
            let isLast = start + 4 == text.count
            guard digits.count == 4 || isLast && digits.count >= 2,
                group.dropFirst(digits.count).allSatisfy({ $0 == UInt8(ascii: "=") })
            else { return nil }
            var bits = 0
            for digit in digits {
                guard let value = alphabet.firstIndex(of: digit) else { return nil }
                bits = bits << 6 | value
            }
            bits <<= 6 * (4 - digits.count)
            for place in 0..<digits.count - 1 {
                bytes.append(UInt8(truncatingIfNeeded: bits >> (16 - 8 * place)))
            }
        }
        return bytes
    }
}
