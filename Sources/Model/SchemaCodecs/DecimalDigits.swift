// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// Decimals as Kafka Connect's converters write them in JSON.
package enum ConnectDecimal {
    /// Appends a JSON string with the digits of a decimal, such as "39.00".
    ///
    /// - Parameters:
    ///   - base64: the number without its scale in two's complement, big-endian.
    ///   - scale: how many digits are after the point; below 0, how many zeros follow the digits.
    /// - Returns: false if it is no such number, with nothing appended.
    package static func append(
        base64: UnsafeRawBufferPointer, scale: Int64, to output: inout [UInt8]
    ) -> Bool {
        guard base64.count <= SchemaLimits.decimalBytesMax * 2,
            let bytes = Base64.decode(base64), !bytes.isEmpty
        else { return false }
        var buffer = OutputBuffer(bytesMax: 2048)
        guard bytes.withUnsafeBytes({ buffer.append(decimal: $0, scale: Int(scale)) }) else {
            return false
        }
        output += buffer.bytes
        return true
    }
}

extension OutputBuffer {
    /// A string with the decimal digits of a number, such as "-0.05".
    ///
    /// - Parameters:
    ///   - bytes: the number without its scale in two's complement, big-endian; none means 0.
    ///   - scale: how many digits are after the point; below 0, how many zeros follow the digits.
    /// - Returns: false if there are more than `SchemaLimits.decimalBytesMax` bytes, or the scale is not
    ///   one of `SchemaLimits.decimalScales`, with nothing written.
    mutating func append(decimal bytes: UnsafeRawBufferPointer, scale: Int) -> Bool {
        guard bytes.count <= SchemaLimits.decimalBytesMax,
            SchemaLimits.decimalScales.contains(scale)
        else { return false }
        append(UInt8(ascii: "\""))
        let isNegative = bytes.first.map { $0 >= 0x80 } ?? false
        if isNegative { append(UInt8(ascii: "-")) }
        // 128 bytes have 309 digits.
        let digitsMax = bytes.count * 5 / 2 + 2
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: bytes.count / 4 + 1) { words in
            Self.fill(words, from: bytes, isNegative: isNegative)
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: digitsMax + 9) { digits in
                let count = Self.digits(of: words, into: digits)
                append(digits: digits, count, scale: max(0, scale))
            }
        }
        if scale < 0, bytes.contains(where: { $0 != 0 }) {
            for _ in 0..<(-scale) { append(UInt8(ascii: "0")) }
        }
        append(UInt8(ascii: "\""))
        return true
    }

    /// The magnitude in words, the lowest first.
    private static func fill(
        _ words: UnsafeMutableBufferPointer<UInt32>, from bytes: UnsafeRawBufferPointer,
        isNegative: Bool
    ) {
        words.initialize(repeating: 0)
        var carry: UInt32 = isNegative ? 1 : 0
        for position in 0..<bytes.count {
            var byte = UInt32(bytes[bytes.count - 1 - position])
            if isNegative {
                byte = (byte ^ 0xFF) + carry
                carry = byte >> 8
                byte &= 0xFF
            }
            words[position / 4] |= byte << UInt32(position % 4 * 8)
        }
        assert(carry == 0, "a negative number is not all zeros, so nothing is carried out")
    }

    /// The decimal digits, the lowest first, as numbers; at least one.
    private static func digits(
        of words: UnsafeMutableBufferPointer<UInt32>, into digits: UnsafeMutableBufferPointer<UInt8>
    ) -> Int {
        var count = 0
        var length = words.count
        while length > 0 {
            // Nine digits are divided off at a time.
            var rest: UInt64 = 0
            for index in stride(from: length - 1, through: 0, by: -1) {
                let value = rest << 32 | UInt64(words[index])
                words[index] = UInt32(value / 1_000_000_000)
                rest = value % 1_000_000_000
            }
            while length > 0, words[length - 1] == 0 { length -= 1 }
            for _ in 0..<9 {
                digits.initializeElement(at: count, to: UInt8(rest % 10))
                rest /= 10
                count += 1
                if length == 0, rest == 0 { break }
            }
        }
        return count
    }

    private mutating func append(
        digits: UnsafeMutableBufferPointer<UInt8>, _ count: Int, scale: Int
    ) {
        for position in stride(from: max(count, scale + 1) - 1, through: 0, by: -1) {
            append(UInt8(ascii: "0") + (position < count ? digits[position] : 0))
            if position == scale, scale > 0 { append(UInt8(ascii: ".")) }
        }
    }
}
