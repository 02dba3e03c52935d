// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension String {
    /// The text as a sentence: with a capital letter and a full stop.
    package var asSentence: String {
        guard let first else { return self }
        return first.uppercased() + String(dropFirst()).withFullStop
    }

    /// The text with a full stop, or with the end that it has.
    package var withFullStop: String { ".!?".contains(last ?? ".") ? self : self + "." }

    /// A time of RFC 3339 for people: `2026-11-20 14:03 UTC`.
    package var minuteInUTC: String { "\(prefix(10)) \(dropFirst(11).prefix(5)) UTC" }

    /// The same to the second: `2026-11-20 14:03:12 UTC`.
    package var secondInUTC: String { "\(prefix(10)) \(dropFirst(11).prefix(8)) UTC" }
}

extension [String] {
    /// The first of them, and how many more there are: `a, b and 3 more`.
    package func listed(most: Int = 5) -> String {
        let shown = prefix(most).joined(separator: ", ")
        return count > most ? "\(shown) and \(count - most) more" : shown
    }
}

extension Int {
    /// The number with commas between thousands: `1,204`.
    package var withCommas: String {
        var digits = String(magnitude)
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return (self < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
    }

    /// The number with a noun: `1 record`, `1,204 records`.
    package func counted(_ noun: String, plural: String? = nil) -> String {
        "\(withCommas) \(self == 1 ? noun : plural ?? noun + "s")"
    }
}

extension FixedWidthInteger {
    /// The sum; where it does not fit, the nearest number that does.
    package func adding(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

extension Duration {
    /// About how long it is, for people: `12 s`, `5 min`, `3 h`, `4 d`.
    package var rounded: String {
        let seconds = components.seconds
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) d"
        }
    }
}
