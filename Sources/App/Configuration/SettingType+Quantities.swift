// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension SettingType where Value == Duration {
    /// A duration, written as a number and a unit: `500ms`, `30s`, `10m`, `24h`, `7d`.
    static func duration(_ bounds: ClosedRange<Duration>) -> Self {
        assert(bounds.lowerBound >= .zero, "a duration in a configuration is at least zero")
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
    /// A number of bytes, written as a whole number or with a unit: `65536`, `64KiB`, `1MiB`.
    static func bytes(_ bounds: ClosedRange<Int>) -> Self {
        let lowest = QuantityNotation.write(bounds.lowerBound, in: QuantityNotation.sizes)
        let highest = QuantityNotation.write(bounds.upperBound, in: QuantityNotation.sizes)
        let schema = JSONText.object([
            ("type", .array(["integer", "string"])), ("pattern", "^[0-9]+(?:B|KiB|MiB|GiB)?$"),
            ("minimum", .literal("\(bounds.lowerBound)")),
            ("maximum", .literal("\(bounds.upperBound)")),
        ])
        return .scalar(
            "a size from \(lowest) to \(highest)", schema: schema,
            write: { QuantityNotation.write($0, in: QuantityNotation.sizes) }
        ) { text in
            (Int(text) ?? QuantityNotation.parse(text, in: QuantityNotation.sizes)).flatMap {
                bounds.contains($0) ? $0 : nil
            }
        }
    }
}

extension Duration {
    static let schema = JSONText.object([
        ("type", "string"), ("pattern", "^[0-9]+(?:ms|s|m|h|d)$"),
    ])
}
