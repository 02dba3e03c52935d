// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson

/// A number in JSON. Whole numbers are exact: an identifier beyond 2^53 differs from its neighbours,
/// which as doubles are the same. A number with a fraction or an exponent is a double.
package enum ExactNumber: Sendable, Hashable, Comparable {
    case whole(Int128)
    case fraction(Double)

    /// Nil for a text that is no number in JSON.
    package init?(_ text: String) {
        if let whole = Int128(text) {
            self = .whole(whole)
        } else if let double = Double(text), double.isFinite {
            self.init(double)
        } else {
            return nil
        }
    }

    /// Nil for a value that is no number.
    init?(_ value: JSONValue) {
        if let whole = value.wholeNumber {
            self = .whole(whole)
        } else if let double = value.double {
            self.init(double)
        } else {
            return nil
        }
    }

    /// A double that is whole is the whole number of its value, so that each value has one form.
    private init(_ double: Double) {
        self = Int128(exactly: double).map { .whole($0) } ?? .fraction(double)
    }

    package static func < (left: ExactNumber, right: ExactNumber) -> Bool {
        switch (left, right) {
        case (.whole(let left), .whole(let right)): left < right
        case (.fraction(let left), .fraction(let right)): left < right
        // A fraction lies between two whole numbers, or beyond all that there are here.
        case (.whole(let left), .fraction(let right)):
            Int128(exactly: right.rounded(.down)).map { left <= $0 } ?? (right > 0)
        case (.fraction(let left), .whole(let right)):
            Int128(exactly: left.rounded(.down)).map { $0 < right } ?? (left < 0)
        }
    }
}

extension ExactNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    package init(integerLiteral value: Int64) { self = .whole(Int128(value)) }
    package init(floatLiteral value: Double) { self.init(value) }
}
