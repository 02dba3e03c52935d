// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import SchemaCodecs
internal import Simdjson

/// A number in JSON, or in a text of digits. Whole numbers are exact, however large: an identifier
/// beyond 2^53 differs from its neighbours, which as doubles are the same. A number with a fraction
/// is a double.
package enum ExactNumber: Sendable, Hashable, Comparable {
    case whole(Int128)
    case fraction(Double)
    /// Beyond 128 bits.
    case huge(Huge)

    /// A number as 0.d₁d₂d₃… × 10^exponent. Neither its first nor its last digit is 0, so that each
    /// value has one form.
    package struct Huge: Sendable, Hashable {
        let isNegative: Bool
        let exponent: Int
        let digits: [UInt8]

        fileprivate func isLess(than other: Huge) -> Bool {
            guard isNegative == other.isNegative else { return isNegative }
            let (small, large) = isNegative ? (other, self) : (self, other)
            guard small.exponent == large.exponent else { return small.exponent < large.exponent }
            return small.digits.lexicographicallyPrecedes(large.digits)
        }
    }

    /// Nil for a text that is no decimal number, such as `-39.00` or `1.5e3`.
    package init?(_ text: String) {
        var text = text
        guard let number = text.withUTF8({ ExactNumber(UnsafeRawBufferPointer($0)) })
        else { return nil }
        self = number
    }

    /// The same of UTF-8.
    init?(_ text: UnsafeRawBufferPointer) {
        guard let decimal = DecimalText(text) else { return nil }
        if let whole = decimal.whole {
            self = .whole(whole)
        } else if decimal.isWhole {
            self = .huge(decimal.huge)
        } else if let double = Double(String(decoding: text, as: UTF8.self)) {
            self.init(double)
        } else {
            return nil
        }
    }

    /// Nil for a value that is no number.
    init?(_ value: JSONValue) {
        if let whole = value.wholeNumber {
            self = .whole(whole)
        } else if let text = value.hugeNumber {
            self.init(text)
        } else if let double = value.double {
            self.init(double)
        } else {
            return nil
        }
    }

    /// The number of a value that is one, or a text of one: decimals are written as texts.
    init?(comparable value: JSONValue) {
        if let text = value.string { self.init(text) } else { self.init(value) }
    }

    /// A double that is whole is the whole number of its value, so that each value has one form.
    private init(_ double: Double) {
        if let whole = Int128(exactly: double) {
            self = .whole(whole)
        } else if double.magnitude >= 0x1p127, let number = ExactNumber(double.description) {
            self = number
        } else {
            self = .fraction(double)
        }
    }

    package static func < (left: ExactNumber, right: ExactNumber) -> Bool {
        switch (left, right) {
        case (.whole(let left), .whole(let right)): left < right
        case (.fraction(let left), .fraction(let right)): left < right
        // A fraction lies between two whole numbers of 128 bits.
        case (.whole(let left), .fraction(let right)):
            Int128(exactly: right.rounded(.down)).map { left <= $0 } ?? (right > 0)
        case (.fraction(let left), .whole(let right)):
            Int128(exactly: left.rounded(.down)).map { $0 < right } ?? (left < 0)
        case (.huge(let left), .huge(let right)): left.isLess(than: right)
        case (.huge(let left), _): left.isNegative
        case (_, .huge(let right)): !right.isNegative
        }
    }
}

extension ExactNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    package init(integerLiteral value: Int64) { self = .whole(Int128(value)) }
    package init(floatLiteral value: Double) { self.init(value) }
}

/// The parts of a decimal number in text: a sign, digits, a point, a power of ten. Leading zeros are
/// allowed, as in a text of a fixed width.
private struct DecimalText {
    let isNegative: Bool
    /// Without zeros at either end.
    private let digits: [UInt8]
    /// How many of the digits, and of zeros after them, are before the point.
    private let exponent: Int

    /// A longer text is no number that anybody compares.
    private static let bytesMax = SchemaLimits.decimalTextBytesMax
    private static let zero = UInt8(ascii: "0")

    init?(_ text: UnsafeRawBufferPointer) {
        guard (1...Self.bytesMax).contains(text.count) else { return nil }
        var position = 0
        func byte() -> UInt8? { position < text.count ? text[position] : nil }
        isNegative = text[0] == UInt8(ascii: "-")
        if isNegative || text[0] == UInt8(ascii: "+") { position = 1 }
        var digits: [UInt8] = []
        let start = position
        while let digit = byte(), (0x30...0x39).contains(digit) {
            digits.append(digit)
            position += 1
        }
        guard position > start else { return nil }
        var exponent = digits.count
        if byte() == UInt8(ascii: ".") {
            position += 1
            let start = position
            while let digit = byte(), (0x30...0x39).contains(digit) {
                digits.append(digit)
                position += 1
            }
            guard position > start else { return nil }
        }
        if let letter = byte(), letter | 0x20 == UInt8(ascii: "e") {
            position += 1
            let isNegative = byte() == UInt8(ascii: "-")
            if isNegative || byte() == UInt8(ascii: "+") { position += 1 }
            let start = position
            var power = 0
            while let digit = byte(), (0x30...0x39).contains(digit) {
                power = min(power * 10 + Int(digit - Self.zero), 1_000_000_000)
                position += 1
            }
            guard position > start else { return nil }
            exponent += isNegative ? -power : power
        }
        guard position == text.count else { return nil }
        let leading = digits.prefix { $0 == Self.zero }.count
        exponent -= leading
        digits.removeFirst(leading)
        while digits.last == Self.zero { digits.removeLast() }
        self.digits = digits
        self.exponent = exponent
    }

    var isWhole: Bool { digits.count <= exponent || digits.isEmpty }

    /// The value, if it is whole and fits.
    var whole: Int128? {
        guard !digits.isEmpty else { return 0 }
        // 2^127 has 39 digits.
        guard isWhole, exponent <= 39 else { return nil }
        var value: Int128 = 0
        for place in 0..<exponent {
            let digit = Int128(place < digits.count ? digits[place] - Self.zero : 0)
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflow) =
                isNegative
                ? product.subtractingReportingOverflow(digit)
                : product.addingReportingOverflow(digit)
            guard !tooLarge, !overflow else { return nil }
            value = sum
        }
        return value
    }

    var huge: ExactNumber.Huge {
        ExactNumber.Huge(isNegative: isNegative, exponent: exponent, digits: digits)
    }
}
