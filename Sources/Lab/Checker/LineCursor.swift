// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Walks over a line that has exactly the members of a fixed format, in its order and without white
/// space. Whatever departs from that is left to Foundation's parser, which is slower by far.
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

    /// Digits only; nil where there are none, or where they may not fit.
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

    /// The range of a string's bytes up to its quote, which is passed; nil if one is escaped.
    mutating func string(in line: Span<UInt8>) -> Range<Int>? {
        let start = position
        while position < line.count {
            let byte = line[position]
            if byte == 0x22 {
                defer { position += 1 }
                return start..<position
            }
            // A backslash, or a control character that no JSON string has.
            if byte == 0x5C || byte < 0x20 { return nil }
            position += 1
        }
        return nil
    }
}
