// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Parses a line that has exactly the members of a fixed format, in order and without white space.
/// Any other line is left to Foundation's parser, which is far slower.
struct LineCursor {
    private var position = 0

    func isAtEnd(of line: Span<UInt8>) -> Bool { position == line.count }

    mutating func skip(_ text: StaticString, in line: Span<UInt8>) -> Bool {
        let count = text.utf8CodeUnitCount
        guard line.count - position >= count else { return false }
        for index in 0..<count where line[position + index] != text.utf8Start[index] {
            return false
        }
        position += count
        return true
    }

    /// Parses digits; nil if there are none or if they may not fit.
    mutating func integer(in line: Span<UInt8>) -> Int64? {
        let start = position
        var value: Int64 = 0
        while position < line.count, line[position] >= 0x30, line[position] <= 0x39 {
            value = value &* 10 &+ Int64(line[position] - 0x30)
            position += 1
        }
        // Nanoseconds since 1970 have 19 digits; below 9 × 10¹⁸ they fit.
        let count = position - start
        guard (1...18).contains(count) || count == 19 && line[start] < 0x39 else { return nil }
        return value
    }

    /// Parses a string up to and including its closing quote, and returns the range of its bytes;
    /// nil if it contains an escape.
    mutating func string(in line: Span<UInt8>) -> Range<Int>? {
        let start = position
        while position < line.count {
            let byte = line[position]
            if byte == 0x22 {
                defer { position += 1 }
                return start..<position
            }
            // This is a backslash, or a control character, which no JSON string contains.
            if byte == 0x5C || byte < 0x20 { return nil }
            position += 1
        }
        return nil
    }
}
