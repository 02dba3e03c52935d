// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension WallTime {
    /// Reads an RFC 3339 instant such as `2026-11-21T06:12:00.123Z` (offsets accepted; digits below
    /// the millisecond ignored). Nil when the bytes are anything else, or when the instant in UTC
    /// is outside the years 0000 to 9999, so that it could not be written again.
    ///
    /// Written by hand because a full replay reads one per registration, at a million a second.
    package init?(rfc3339 bytes: UnsafeRawBufferPointer) {
        var reader = DigitReader(bytes: bytes)
        guard let year = reader.number(digits: 4), reader.skip("-"),
            let month = reader.number(digits: 2), reader.skip("-"),
            let day = reader.number(digits: 2), reader.skip("T") || reader.skip("t"),
            let hour = reader.number(digits: 2), reader.skip(":"),
            let minute = reader.number(digits: 2), reader.skip(":"),
            let second = reader.number(digits: 2),
            (1...12).contains(month), (1...Self.length(ofMonth: month, year: year)).contains(day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        guard let fraction = reader.millisecondFraction(), let offset = reader.offsetMinutes(),
            reader.isAtEnd
        else { return nil }
        let days = Self.days(year: year, month: month, day: day)
        let minutes = (days * 24 + hour) * 60 + minute - offset
        self.init(milliseconds: Int64(minutes * 60 + second) * 1000 + Int64(fraction))
        guard Self.writable.contains(self) else { return nil }
    }

    /// The instants that `rfc3339` can write: the years 0000 to 9999.
    private static let writable: ClosedRange<WallTime> = {
        let first = Int64(days(year: 0, month: 1, day: 1)) * 86_400_000
        let end = Int64(days(year: 10_000, month: 1, day: 1)) * 86_400_000
        return WallTime(milliseconds: first)...WallTime(milliseconds: end - 1)
    }()

    package init?(rfc3339 text: String) {
        var text = text
        guard let time = text.withUTF8({ WallTime(rfc3339: UnsafeRawBufferPointer($0)) }) else {
            return nil
        }
        self = time
    }

    /// RFC 3339 UTC with milliseconds, as every record of ours is written. Producers may give a
    /// Kafka record any time: one beyond the years of RFC 3339 becomes the nearest within.
    package var rfc3339: String {
        let written = min(max(self, Self.writable.lowerBound), Self.writable.upperBound)
        let (days, inDay) = written.milliseconds.flooredDivision(by: 86_400_000)
        let (year, month, day) = Self.civil(days: Int(days))
        assert(
            (1...12).contains(month) && (1...31).contains(day),
            "the month is from 1 to 12 and the day from 1 to 31")
        assert(
            Self.days(year: year, month: month, day: day) == Int(days),
            "the date that is written is the day that was counted")
        let millisecond = Int(inDay % 1000)
        let second = Int(inDay / 1000)
        return Self.padded(year, 4) + "-" + Self.padded(month, 2) + "-" + Self.padded(day, 2)
            + "T" + Self.padded(second / 3600, 2) + ":" + Self.padded(second / 60 % 60, 2)
            + ":" + Self.padded(second % 60, 2) + "." + Self.padded(millisecond, 3) + "Z"
    }

    private static func padded(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func length(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar. The year is counted from March,
    /// so that the leap day is its last.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let marchYear = month > 2 ? year : year - 1
        let (era, yearOfEra) = marchYear.flooredDivision(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension BinaryInteger {
    fileprivate func flooredDivision(by divisor: Self) -> (quotient: Self, remainder: Self) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// Goes through the bytes of an instant.
private struct DigitReader {
    let bytes: UnsafeRawBufferPointer
    var position = 0

    var isAtEnd: Bool { position == bytes.count }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(character.value) else {
            return false
        }
        position += 1
        return true
    }

    mutating func number(digits: Int) -> Int? {
        guard position + digits <= bytes.count else { return nil }
        var value = 0
        for _ in 0..<digits {
            guard let digit = digit() else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    mutating func digit() -> Int? {
        guard position < bytes.count, case 0x30...0x39 = bytes[position] else { return nil }
        defer { position += 1 }
        return Int(bytes[position] - 0x30)
    }

    /// 0 when there is no fraction; nil when there is a point without digits.
    mutating func millisecondFraction() -> Int? {
        guard skip(".") else { return 0 }
        guard let first = digit() else { return nil }
        var value = first * 100
        var weight = 10
        while let next = digit() {
            value += next * weight
            weight /= 10
        }
        return value
    }

    mutating func offsetMinutes() -> Int? {
        if skip("Z") || skip("z") { return 0 }
        let sign: Int
        if skip("+") { sign = 1 } else if skip("-") { sign = -1 } else { return nil }
        guard let hours = number(digits: 2), skip(":"), let minutes = number(digits: 2),
            hours < 24, minutes < 60
        else { return nil }
        return sign * (hours * 60 + minutes)
    }
}
