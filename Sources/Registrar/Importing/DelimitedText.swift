// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Why a record is no row. The text never quotes a token.
package struct RowProblem: Error, Hashable, Sendable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}

/// Takes records of text with delimiters apart into their fields.
package enum DelimitedText {
    /// More columns than any export has.
    static let fieldsMax = 4096

    /// The fields of a record of CSV (RFC 4180). An empty field is nil unless it is quoted: so
    /// PostgreSQL tells a missing value from an empty text.
    package static func csv(
        _ record: UnsafeRawBufferPointer, delimiter: UInt8
    ) throws(RowProblem) -> [String?] {
        let quote = UInt8(ascii: "\"")
        var fields: [String?] = []
        var field: [UInt8] = []
        var wasQuoted = false
        var index = 0
        while true {
            field.removeAll(keepingCapacity: true)
            wasQuoted = index < record.count && record[index] == quote
            if wasQuoted {
                index = try quoted(record, from: index + 1, into: &field)
                guard index == record.count || record[index] == delimiter else {
                    throw RowProblem("field \(fields.count + 1) goes on behind its closing quote")
                }
            } else {
                let start = index
                while index < record.count, record[index] != delimiter { index += 1 }
                field.append(contentsOf: record[start..<index])
                guard !field.contains(quote) else {
                    throw RowProblem("field \(fields.count + 1) has a quote and is not quoted")
                }
            }
            fields.append(
                try text(field, isNull: field.isEmpty && !wasQuoted, number: fields.count + 1))
            guard index < record.count else { return fields }
            index += 1
            guard fields.count < fieldsMax else {
                throw RowProblem("it has more than \(fieldsMax) fields")
            }
        }
    }

    /// - Returns: the index behind the closing quote.
    private static func quoted(
        _ record: UnsafeRawBufferPointer, from start: Int, into field: inout [UInt8]
    ) throws(RowProblem) -> Int {
        let quote = UInt8(ascii: "\"")
        var index = start
        while index < record.count {
            if record[index] != quote {
                field.append(record[index])
            } else if index + 1 < record.count, record[index + 1] == quote {
                field.append(quote)
                index += 1
            } else {
                return index + 1
            }
            index += 1
        }
        throw RowProblem("a quote is opened that nothing closes")
    }

    /// The fields of a record of PostgreSQL's `COPY … TO` in its text format: tabs between them, `\N`
    /// for null, and backslash escapes. Nil for `\.`, which ends the data.
    package static func copy(
        _ record: UnsafeRawBufferPointer
    ) throws(RowProblem) -> [String?]? {
        if record.elementsEqual("\\.".utf8) { return nil }
        var fields: [String?] = []
        for part in record.split(
            separator: UInt8(ascii: "\t"), maxSplits: fieldsMax, omittingEmptySubsequences: false)
        {
            guard fields.count < fieldsMax else {
                throw RowProblem("it has more than \(fieldsMax) fields")
            }
            let isNull = part.elementsEqual("\\N".utf8)
            fields.append(
                try text(
                    isNull ? [] : try unescaped(part), isNull: isNull, number: fields.count + 1))
        }
        return fields
    }

    private static func unescaped(
        _ part: Slice<UnsafeRawBufferPointer>
    ) throws(RowProblem) -> [UInt8] {
        guard part.contains(UInt8(ascii: "\\")) else { return Array(part) }
        var bytes: [UInt8] = []
        var rest = part
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard let escaped = rest.popFirst() else {
                throw RowProblem("a field ends within an escape")
            }
            switch escaped {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "v"): bytes.append(0x0B)
            case UInt8(ascii: "x"):
                bytes.append(try digits(&rest, most: 2, radix: 16))
            case UInt8(ascii: "0")...UInt8(ascii: "7"):
                rest = part[(rest.startIndex - 1)..<part.endIndex]
                bytes.append(try digits(&rest, most: 3, radix: 8))
            default: bytes.append(escaped)
            }
        }
        return bytes
    }

    private static func digits(
        _ rest: inout Slice<UnsafeRawBufferPointer>, most: Int, radix: Int
    ) throws(RowProblem) -> UInt8 {
        var number: Int?
        for _ in 0..<most {
            guard let byte = rest.first,
                let digit = Character(UnicodeScalar(byte)).hexDigitValue, digit < radix
            else { break }
            number = (number ?? 0) * radix + digit
            rest = rest.dropFirst()
        }
        guard let number else { throw RowProblem("a field has an escape without digits") }
        assert(number < 512, "an escape has at most two hexadecimal or three octal digits")
        return UInt8(truncatingIfNeeded: number)
    }

    private static func text(
        _ bytes: [UInt8], isNull: Bool, number: Int
    ) throws(RowProblem) -> String? {
        if isNull { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw RowProblem("field \(number) is not UTF-8")
        }
        return text
    }
}
