// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

/// The messages that JSON has a form of its own for.
extension ProtobufReading {
    /// The two fields of timestamps and durations.
    private mutating func secondsAndNanos(
        _ bytes: UnsafeRawBufferPointer
    ) -> (seconds: Int64, nanos: Int32)? {
        var cursor = ByteCursor(bytes)
        var (seconds, nanos): (Int64, Int32) = (0, 0)
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return nil }
            guard tag.wire == Tag.varint, tag.number <= 2 else {
                guard skip(tag, &cursor) else { return nil }
                continue
            }
            guard let value = cursor.varint() else {
                fault = cursor.fault
                return nil
            }
            if tag.number == 1 {
                seconds = Int64(bitPattern: value)
            } else {
                nanos = Int32(truncatingIfNeeded: value)
            }
        }
        return (seconds, nanos)
    }

    /// RFC 3339 in UTC.
    mutating func writeTimestamp(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        guard let (seconds, nanos) = secondsAndNanos(bytes) else { return false }
        // 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z
        guard (-62_135_596_800...253_402_300_799).contains(seconds), Self.nanos.contains(nanos)
        else { return fail(.noTime) }
        let day = CivilDay(secondsSince1970: seconds)
        output.append(UInt8(ascii: "\""))
        append(day.year, digits: 4, before: "-", &output)
        append(day.month, digits: 2, before: "-", &output)
        append(day.day, digits: 2, before: "T", &output)
        append(day.second / 3600, digits: 2, before: ":", &output)
        append(day.second / 60 % 60, digits: 2, before: ":", &output)
        append(day.second % 60, digits: 2, before: "", &output)
        append(nanos: nanos, &output)
        output.append("Z\"")
        return true
    }

    private static let nanos: ClosedRange<Int32> = 0...999_999_999

    /// Seconds with an `s`.
    mutating func writeDuration(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        guard let (seconds, nanos) = secondsAndNanos(bytes) else { return false }
        // Both have the same sign.
        guard seconds.magnitude <= 315_576_000_000, nanos.magnitude <= 999_999_999,
            seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0)
        else { return fail(.noDuration) }
        output.append(UInt8(ascii: "\""))
        if seconds < 0 || nanos < 0 { output.append(UInt8(ascii: "-")) }
        output.append(unsigned: seconds.magnitude)
        append(nanos: Int32(nanos.magnitude), &output)
        output.append("s\"")
        return true
    }

    /// None, 3, 6 or 9 digits after a point.
    private func append(nanos: Int32, _ output: inout OutputBuffer) {
        guard nanos > 0 else { return }
        output.append(UInt8(ascii: "."))
        if nanos % 1_000_000 == 0 {
            append(Int(nanos / 1_000_000), digits: 3, before: "", &output)
        } else if nanos % 1000 == 0 {
            append(Int(nanos / 1000), digits: 6, before: "", &output)
        } else {
            append(Int(nanos), digits: 9, before: "", &output)
        }
    }

    private func append(
        _ number: Int, digits: Int, before text: StaticString, _ output: inout OutputBuffer
    ) {
        var unit = 1
        for _ in 1..<digits { unit *= 10 }
        while unit > 0 {
            output.append(UInt8(ascii: "0") + UInt8(number / unit % 10))
            unit /= 10
        }
        output.append(text)
    }

    /// Confluent's `Decimal`, a string of digits as Avro's are: `value` is the number without its `scale`.
    mutating func writeDecimal(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        var value = UnsafeRawBufferPointer(start: nil, count: 0)
        var scale: Int32 = 0
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return false }
            switch tag {
            case Tag(number: 1, wire: Tag.sized):
                guard let bytes = sized(&cursor) else { return false }
                value = bytes
            case Tag(number: 3, wire: Tag.varint):
                guard let number = cursor.varint() else { return fail(cursor.fault) }
                scale = Int32(truncatingIfNeeded: number)
            default:
                guard skip(tag, &cursor) else { return false }
            }
        }
        return output.append(decimal: value, scale: Int(scale)) || fail(.longDecimal)
    }

    /// The value itself.
    mutating func writeWrapper(
        _ field: ProtobufProgram.Field, _ bytes: UnsafeRawBufferPointer, _ program: ProtobufProgram,
        _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        var last: Int?
        while !cursor.isAtEnd {
            let start = cursor.position
            guard let tag = tag(&cursor), skip(tag, &cursor) else { return false }
            if tag == Tag(number: 1, wire: field.wrapped.wire) { last = start }
        }
        guard let last else {
            writeDefault(field.wrapped, 0, program, &output)
            return true
        }
        cursor.rewind(to: last)
        guard tag(&cursor) != nil else { return false }
        return writeScalar(field.wrapped, 0, &cursor, program, &output)
    }

    /// A string of paths in lower camel case.
    mutating func writeFieldMask(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        output.append(UInt8(ascii: "\""))
        var isFirst = true
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return false }
            guard tag == Tag(number: 1, wire: Tag.sized) else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard let path = sized(&cursor) else { return false }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            guard append(maskPath: path, &output) else { return fail(.noMask) }
        }
        output.append(UInt8(ascii: "\""))
        return true
    }

    /// - Returns: false if these are no names with dots between.
    private func append(
        maskPath path: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        var isUpper = false
        for byte in path {
            switch byte {
            case UInt8(ascii: "_"):
                isUpper = true
                continue
            case UInt8(ascii: "a")...UInt8(ascii: "z"): output.append(isUpper ? byte - 0x20 : byte)
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "."):
                output.append(byte)
            default: return false
            }
            isUpper = false
        }
        return true
    }

    // MARK: JSON in Protobuf

    mutating func writeStructure(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        writeItems(bytes, between: ("{", "}"), &output) { $0.writeMember($1, &$2) }
    }

    mutating func writeList(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        writeItems(bytes, between: ("[", "]"), &output) { $0.writeValue($1, &$2) }
    }

    /// Both have nothing but their items, in field 1.
    private mutating func writeItems(
        _ bytes: UnsafeRawBufferPointer, between brackets: (Unicode.Scalar, Unicode.Scalar),
        _ output: inout OutputBuffer,
        _ write: (inout Self, UnsafeRawBufferPointer, inout OutputBuffer) -> Bool
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: brackets.0))
        var cursor = ByteCursor(bytes)
        var isFirst = true
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return false }
            guard tag == Tag(number: 1, wire: Tag.sized) else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard !output.hasOverflowed else { return fail(.tooLarge) }
            guard let item = sized(&cursor) else { return false }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            guard write(&self, item, &output) else { return false }
        }
        output.append(UInt8(ascii: brackets.1))
        depth -= 1
        return true
    }

    private mutating func writeMember(
        _ entry: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(entry)
        var key = UnsafeRawBufferPointer(start: nil, count: 0)
        var value = key
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return false }
            guard tag.wire == Tag.sized, tag.number <= 2 else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard let bytes = sized(&cursor) else { return false }
            if tag.number == 1 { key = bytes } else { value = bytes }
        }
        guard output.append(string: key) else { return fail(.notUTF8) }
        output.append(UInt8(ascii: ":"))
        return writeValue(value, &output)
    }

    /// The last of the fields counts, since they are a oneof; without any it is `null`.
    mutating func writeValue(
        _ bytes: UnsafeRawBufferPointer, _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        var last: Int?
        while !cursor.isAtEnd {
            let start = cursor.position
            guard let tag = tag(&cursor), skip(tag, &cursor) else { return false }
            if Self.kinds.contains(tag) { last = start }
        }
        guard let last else {
            output.append("null")
            return true
        }
        cursor.rewind(to: last)
        guard let tag = tag(&cursor) else { return false }
        switch tag.number {
        case 1: output.append("null")
        case 2:
            guard let bits = cursor.fixed64() else { return fail(.endsTooEarly) }
            output.append(double: Double(bitPattern: bits))
        case 4:
            guard let value = cursor.varint() else { return fail(cursor.fault) }
            output.append(bool: value != 0)
        case let number:
            guard let content = sized(&cursor) else { return false }
            if number == 5 { return writeStructure(content, &output) }
            if number == 6 { return writeList(content, &output) }
            return output.append(string: content) || fail(.notUTF8)
        }
        return true
    }

    private static let kinds = [
        Tag(number: 1, wire: Tag.varint), Tag(number: 2, wire: Tag.fixed64),
        Tag(number: 3, wire: Tag.sized), Tag(number: 4, wire: Tag.varint),
        Tag(number: 5, wire: Tag.sized), Tag(number: 6, wire: Tag.sized),
    ]
}

/// A day of the Gregorian calendar in UTC, and how far it has gone.
private struct CivilDay {
    let year: Int
    let month: Int
    let day: Int
    let second: Int

    /// Years begin in March here, so that the leap day is their last; eras have 400 of them.
    init(secondsSince1970: Int64) {
        let seconds = Int(secondsSince1970)
        // 719,468 days are from 0000-03-01 to 1970-01-01, 146,097 in an era.
        let sinceMarch = seconds.flooredDivided(by: 86_400) + 719_468
        second = seconds - (sinceMarch - 719_468) * 86_400
        let era = sinceMarch.flooredDivided(by: 146_097)
        let inEra = sinceMarch - era * 146_097
        let yearInEra = (inEra - inEra / 1460 + inEra / 36_524 - inEra / 146_096) / 365
        let inYear = inEra - (365 * yearInEra + yearInEra / 4 - yearInEra / 100)
        let monthFromMarch = (5 * inYear + 2) / 153
        day = inYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearInEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}

extension Int {
    fileprivate func flooredDivided(by divisor: Int) -> Int {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
