// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Durations and sizes as people write them, in the configuration and on the command line: a whole
/// number and a unit, `30s`, `64KiB`.
package enum QuantityNotation {
    package typealias Unit = (name: String, size: Int)

    /// The units, largest first; a size is in milliseconds.
    package static let durations: [Unit] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
    /// The units, largest first; a size is in bytes.
    package static let sizes: [Unit] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    /// Reads a whole number and a unit, with nothing between or around them. Nil for any other
    /// text and for a number that does not fit.
    package static func parse(_ text: String, in units: [Unit]) -> Int? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int(digits),
            let unit = units.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (amount, overflow) = number.multipliedReportingOverflow(by: unit.size)
        return overflow ? nil : amount
    }

    /// The shortest exact notation; a single day stays `24h`, as people say it.
    package static func write(_ amount: Int, in units: [Unit]) -> String {
        let unit =
            units.first {
                amount % $0.size == 0 && amount >= ($0.name == "d" ? 2 * $0.size : $0.size)
            } ?? units[units.count - 1]
        return "\(amount / unit.size)\(unit.name)"
    }
}

extension Duration {
    /// Reads a whole number with a unit, such as `30s`; nil for any other text.
    package init?(notation text: String) {
        guard let milliseconds = QuantityNotation.parse(text, in: QuantityNotation.durations)
        else { return nil }
        self = .milliseconds(milliseconds)
    }

    /// The duration as the configuration writes it, rounded down to whole milliseconds.
    package var notation: String {
        let (seconds, attoseconds) = components
        let milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        return milliseconds == 0
            ? "0s" : QuantityNotation.write(milliseconds, in: QuantityNotation.durations)
    }
}
