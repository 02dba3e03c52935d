// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The units that durations and sizes are written in, largest first.
enum Unit {
    static let durations: [(name: String, size: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
    static let sizes: [(name: String, size: Int)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    /// Reads a whole number and a unit, with nothing between or around them. Nil for any other
    /// text and for a number that does not fit.
    static func parse(_ text: String, in units: [(name: String, size: Int)]) -> Int? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int(digits),
            let unit = units.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (amount, overflow) = number.multipliedReportingOverflow(by: unit.size)
        return overflow ? nil : amount
    }

    /// The shortest exact writing; a single day stays `24h`, as people say it.
    static func write(_ amount: Int, in units: [(name: String, size: Int)]) -> String {
        let unit =
            units.first {
                amount % $0.size == 0 && amount >= ($0.name == "d" ? 2 * $0.size : $0.size)
            } ?? units[units.count - 1]
        return "\(amount / unit.size)\(unit.name)"
    }
}

extension SettingType where Value == Duration {
    /// Written as a number and a unit: `500ms`, `30s`, `10m`, `24h`, `7d`.
    static func duration(_ bounds: ClosedRange<Duration>) -> Self {
        let range = "\(bounds.lowerBound.notation) to \(bounds.upperBound.notation)"
        return .scalar(
            "a duration from \(range)", schema: Duration.schema, write: \.notation
        ) { text throws(Complaint) in
            guard let duration = Duration(notation: text) else {
                throw Complaint(
                    wrong: "is \(quoted(text))",
                    remedy: "must be a duration from \(range), written as a whole number and "
                        + "one of ms, s, m, h, d")
            }
            return bounds.contains(duration) ? duration : nil
        }
    }
}

extension SettingType where Value == Int {
    /// Bytes, written as a whole number or with a unit: `65536`, `64KiB`, `1MiB`.
    static func bytes(_ bounds: ClosedRange<Int>) -> Self {
        let lowest = Unit.write(bounds.lowerBound, in: Unit.sizes)
        let highest = Unit.write(bounds.upperBound, in: Unit.sizes)
        let schema = JSONText.object([
            ("type", .array(["integer", "string"])), ("pattern", "^[0-9]+(?:B|KiB|MiB|GiB)?$"),
            ("minimum", .literal("\(bounds.lowerBound)")),
            ("maximum", .literal("\(bounds.upperBound)")),
        ])
        return .scalar(
            "a size from \(lowest) to \(highest)", schema: schema,
            write: { Unit.write($0, in: Unit.sizes) }
        ) { text in
            (Int(text) ?? Unit.parse(text, in: Unit.sizes)).flatMap {
                bounds.contains($0) ? $0 : nil
            }
        }
    }
}

extension Duration {
    static let schema = JSONText.object([
        ("type", "string"), ("pattern", "^[0-9]+(?:ms|s|m|h|d)$"),
    ])

    package init?(notation text: String) {
        guard let milliseconds = Unit.parse(text, in: Unit.durations) else { return nil }
        self = .milliseconds(milliseconds)
    }

    /// As it is written in the file; whole milliseconds.
    package var notation: String {
        let (seconds, attoseconds) = components
        let milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        return milliseconds == 0 ? "0s" : Unit.write(milliseconds, in: Unit.durations)
    }
}
