// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Simdjson

/// How values are written as JSON.
extension OutputBuffer {
    mutating func append(integer: Int64) {
        if integer < 0 { append(UInt8(ascii: "-")) }
        append(unsigned: integer.magnitude)
    }

    mutating func append(unsigned: UInt64) {
        if unsigned < 10 { return append(UInt8(ascii: "0") + UInt8(unsigned)) }
        // 2^64 has 20 digits.
        append(upTo: 20) { room in
            var rest = unsigned
            var position = 20
            while rest > 0 {
                position -= 1
                room[position] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
            let count = 20 - position
            for index in 0..<count { room[index] = room[position + index] }
            return count
        }
    }

    /// The shortest digits that mean the same number; `null` for what JSON has no number for.
    mutating func append(double: Double) {
        guard double.isFinite else { return append("null") }
        append(text: double.description)
    }

    /// Like `double`, with the digits that a number of 32 bits needs: 0.1, not 0.10000000149011612.
    mutating func append(float: Float) {
        guard float.isFinite else { return append("null") }
        append(text: float.description)
    }

    private mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(bool: Bool) {
        if bool { append("true") } else { append("false") }
    }

    /// A JSON string; false if it is not UTF-8, with nothing written.
    mutating func append(string: UnsafeRawBufferPointer) -> Bool {
        guard isPlain(string) else { return appendEscaped(string) }
        append(UInt8(ascii: "\""))
        append(string)
        append(UInt8(ascii: "\""))
        return true
    }

    /// Whether these are printable ASCII without quotes and backslashes. Eight bytes are looked at in
    /// a step.
    private func isPlain(_ string: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        while position + 8 <= string.count {
            let word = string.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            guard Self.isPlain(word) else { return false }
            position += 8
        }
        while position < string.count {
            let byte = string[position]
            guard byte >= 0x20, byte < 0x80, byte != 0x22, byte != 0x5C else { return false }
            position += 1
        }
        return true
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    /// The usual test for a byte below 0x20, for a quote and for a backslash, each of which may call a
    /// plain word out of the ordinary, and never the other way round.
    private static func isPlain(_ word: UInt64) -> Bool {
        let control = word &- ones &* 0x20
        let quote = (word ^ ones &* 0x22) &- ones
        let backslash = (word ^ ones &* 0x5C) &- ones
        return (word | control | quote | backslash) & tops == 0
    }

    private mutating func appendEscaped(_ string: UnsafeRawBufferPointer) -> Bool {
        guard UTF8Text.isValid(string) else { return false }
        append(UInt8(ascii: "\""))
        var clean = 0
        for (index, byte) in string.enumerated()
        where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            append(UnsafeRawBufferPointer(rebasing: string[clean..<index]))
            appendEscape(byte)
            clean = index + 1
        }
        append(UnsafeRawBufferPointer(rebasing: string[clean...]))
        append(UInt8(ascii: "\""))
        return true
    }

    private mutating func appendEscape(_ byte: UInt8) {
        if byte >= 0x20 {
            append(UInt8(ascii: "\\"))
            return append(byte)
        }
        append("\\u00")
        append(hexadecimal: byte)
    }

    private mutating func append(hexadecimal byte: UInt8) {
        append(Self.hexadecimal[Int(byte >> 4)])
        append(Self.hexadecimal[Int(byte & 15)])
    }

    private static let hexadecimal = Array("0123456789abcdef".utf8)

    /// A string of RFC 4648's base64 with padding.
    mutating func append(base64 bytes: UnsafeRawBufferPointer) {
        append(UInt8(ascii: "\""))
        append(upTo: (bytes.count + 2) / 3 * 4) { room in
            var (from, to) = (0, 0)
            while from < bytes.count {
                var group: UInt32 = 0
                for offset in 0..<3 {
                    let byte = from + offset < bytes.count ? bytes[from + offset] : 0
                    group = group << 8 | UInt32(byte)
                }
                for offset in 0..<4 {
                    let digit = Self.base64[Int(group >> UInt32(18 - 6 * offset) & 63)]
                    room[to + offset] = from + offset <= bytes.count ? digit : UInt8(ascii: "=")
                }
                from += 3
                to += 4
            }
            return to
        }
        append(UInt8(ascii: "\""))
    }

    private static let base64 = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// A string in the form of RFC 9562.
    /// - Parameter bytes: 16.
    mutating func append(uuid bytes: UnsafeRawBufferPointer) {
        append(UInt8(ascii: "\""))
        for (index, byte) in bytes.enumerated() {
            if index == 4 || index == 6 || index == 8 || index == 10 { append(UInt8(ascii: "-")) }
            append(hexadecimal: byte)
        }
        append(UInt8(ascii: "\""))
    }
}
