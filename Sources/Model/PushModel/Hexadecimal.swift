// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Tokens travel as lowercase hexadecimal text in paths and records and as bytes everywhere else.
package enum Hexadecimal {
    package static func digit(_ value: UInt8) -> UInt8 {
        assert(value < 16, "a hexadecimal digit has four bits")
        return value < 10 ? 0x30 &+ value : 0x57 &+ value
    }

    /// Writes two digits a byte to `output`, which must have room for twice `bytes.count`.
    package static func encode(
        _ bytes: UnsafeBufferPointer<UInt8>, to output: UnsafeMutablePointer<UInt8>
    ) {
        for index in 0..<bytes.count {
            output[2 &* index] = digit(bytes[index] >> 4)
            output[2 &* index &+ 1] = digit(bytes[index] & 15)
        }
    }

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text = [UInt8]()
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads `text` into `output`, which must have room for half its length. Returns the number of
    /// bytes, or nil when the text is empty, of odd length, or holds anything but digits.
    package static func decode(
        _ text: UnsafeRawBufferPointer, to output: UnsafeMutablePointer<UInt8>
    ) -> Int? {
        guard text.count > 0, text.count % 2 == 0 else { return nil }
        for index in 0..<(text.count / 2) {
            let high = value(text[2 &* index])
            let low = value(text[2 &* index &+ 1])
            // An invalid digit's value has its top bits set.
            guard (high | low) < 16 else { return nil }
            output[index] = high << 4 | low
        }
        return text.count / 2
    }

    package static func decode(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { utf8 in
            var bytes = [UInt8](repeating: 0, count: utf8.count / 2)
            let count = bytes.withUnsafeMutableBufferPointer { buffer -> Int? in
                guard let output = buffer.baseAddress else { return nil }
                return decode(UnsafeRawBufferPointer(utf8), to: output)
            }
            return count == nil ? nil : bytes
        }
    }

    private static func value(_ digit: UInt8) -> UInt8 {
        switch digit {
        case 0x30...0x39: digit &- 0x30
        case 0x61...0x66: digit &- 0x57
        case 0x41...0x46: digit &- 0x37
        default: 0xFF
        }
    }
}
