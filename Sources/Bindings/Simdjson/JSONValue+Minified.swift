// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension JSONValue {
    /// Appends this value as JSON without white space; false, with `output` as it was, when that
    /// would make it longer than `bytesMax`.
    ///
    /// Strings keep only the escapes they need, and have U+FFFD in place of a lone surrogate, which no
    /// phone reads. Numbers stay as they are written, duplicate members
    /// stay in their order. The work is bounded by `bytesMax`, and by the document's scalars.
    package func minify(into output: inout [UInt8], bytesMax: Int) -> Bool {
        var minifier = JSONMinifier(of: self)
        return minifier.append(self, to: &output, bytesMax: bytesMax)
    }

    /// Recursion goes no deeper than the parser's `depthMax`.
    fileprivate func write(
        to output: inout [UInt8], bytesMax: Int, _ source: inout JSONSource
    ) -> Bool {
        guard output.count <= bytesMax else { return false }
        switch mark {
        case .object: return writeMembers(to: &output, bytesMax: bytesMax, &source)
        case .array: return writeElements(to: &output, bytesMax: bytesMax, &source)
        case .string:
            let text = text(at: index)
            guard text.count <= bytesMax else { return false }
            JSONString.append(text, to: &output)
        case .signed: output.append(contentsOf: Int64(bitPattern: tape[index + 1]).description.utf8)
        case .unsigned: output.append(contentsOf: tape[index + 1].description.utf8)
        case .double:
            let text = source.number(at: index)
            guard text.count <= bytesMax else { return false }
            output.append(contentsOf: text)
        case .yes: output.append(contentsOf: "true".utf8)
        case .no: output.append(contentsOf: "false".utf8)
        default: output.append(contentsOf: "null".utf8)
        }
        return true
    }

    private func writeMembers(
        to output: inout [UInt8], bytesMax: Int, _ source: inout JSONSource
    ) -> Bool {
        var separator = UInt8(ascii: "{")
        for (key, value) in JSONObject(value: self) {
            guard output.count + key.count <= bytesMax else { return false }
            output.append(separator)
            JSONString.append(key, to: &output)
            output.append(UInt8(ascii: ":"))
            guard value.write(to: &output, bytesMax: bytesMax, &source) else { return false }
            separator = UInt8(ascii: ",")
        }
        if separator == UInt8(ascii: "{") { output.append(separator) }
        output.append(UInt8(ascii: "}"))
        return true
    }

    private func writeElements(
        to output: inout [UInt8], bytesMax: Int, _ source: inout JSONSource
    ) -> Bool {
        var separator = UInt8(ascii: "[")
        for element in JSONArray(value: self) {
            output.append(separator)
            guard element.write(to: &output, bytesMax: bytesMax, &source) else { return false }
            separator = UInt8(ascii: ",")
        }
        if separator == UInt8(ascii: "[") { output.append(separator) }
        output.append(UInt8(ascii: "]"))
        return true
    }
}

/// Writes values of one document, in their order, and goes through the document once for all of them.
package struct JSONMinifier {
    private var source: JSONSource

    /// - Parameter value: any of the document's.
    package init(of value: JSONValue) { source = JSONSource(of: value) }

    /// Like `JSONValue.minify`.
    /// - Parameter value: comes after that of the call before.
    package mutating func append(
        _ value: JSONValue, to output: inout [UInt8], bytesMax: Int
    ) -> Bool {
        let start = output.count
        if value.write(to: &output, bytesMax: bytesMax, &source), output.count <= bytesMax {
            return true
        }
        output.removeSubrange(start...)
        return false
    }
}

/// Strings of JSON.
package enum JSONString {
    /// Appends UTF-8 in quotation marks, escaping what RFC 8259 says must be.
    package static func append(_ text: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        var clean = 0
        for (index, byte) in text.enumerated()
        where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            output.append(contentsOf: text[clean..<index])
            escape(byte, to: &output)
            clean = index + 1
        }
        output.append(contentsOf: text[clean...])
        output.append(UInt8(ascii: "\""))
    }

    private static func escape(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: output.append(UInt8(ascii: "b"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0C: output.append(UInt8(ascii: "f"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        case 0..<0x20:
            let digits = Array("0123456789abcdef".utf8)
            output.append(contentsOf: "u00".utf8)
            output.append(digits[Int(byte >> 4)])
            output.append(digits[Int(byte & 15)])
        default: output.append(byte)
        }
    }
}
