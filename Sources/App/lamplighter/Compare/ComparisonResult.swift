// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel

/// What a comparison has found, for people and for programs.
struct ComparisonResult {
    private let comparison: PushComparison
    private let window: Duration

    init(_ comparison: PushComparison, window: Duration) {
        self.comparison = comparison
        self.window = window
    }

    /// Rounded down: 100 % has no difference.
    private var percent: String {
        let share = comparison.agreement ?? 0
        let thousandths = Int((share * 100_000).rounded(.down))
        let digits = String(1000 + thousandths % 1000).dropFirst()
        let fraction = digits.reversed().drop { $0 == "0" }.reversed()
        return "\(thousandths / 1000)" + (fraction.isEmpty ? "" : "." + String(fraction)) + " %"
    }

    private func sum(_ side: PushComparison.Side) -> Int {
        comparison.counts[side.rawValue].reduce(0, +) - comparison.count(.outside, of: side)
    }

    var lines: [String] {
        let period = comparison.period.map {
            "compared from \($0.lowerBound.rfc3339) to \($0.upperBound.rfc3339), "
        }
        var rows = [["", "old sender", "shadow"]]
        rows.append(["pushes", sum(.old).withCommas, sum(.shadow).withCommas])
        for finding in PushComparison.Finding.allCases {
            rows.append(
                ["\(finding)"]
                    + PushComparison.Side.allCases.map { side in
                        comparison.count(finding, of: side).withCommas
                    })
        }
        let widths = (0..<3).map { column in rows.map { $0[column].count }.max() ?? 0 }
        let table = rows.map { row in
            row[0] + String(repeating: " ", count: widths[0] - row[0].count)
                + zip(row.dropFirst(), widths.dropFirst()).map {
                    "  " + String(repeating: " ", count: $1 - $0.count) + $0
                }.joined()
        }
        return ["\(period ?? "")within \(window.notation)", "agreement \(percent)", ""] + table
            + samples
    }

    private var samples: [String] {
        PushComparison.Finding.allCases.filter { !$0.isAgreement && $0 != .outside }.flatMap {
            finding in
            PushComparison.Side.allCases.flatMap { side in
                comparison.samples(finding, of: side).map { push in
                    "\(finding), of the \(Self.name(side)): \(TokenName(number: push.token)) at "
                        + push.at.rfc3339
                }
            }
        }
    }

    private static func name(_ side: PushComparison.Side) -> String {
        side == .old ? "old sender" : "shadow"
    }

    var json: String {
        get throws {
            func counts(_ side: PushComparison.Side) -> [String: Int] {
                Dictionary(
                    uniqueKeysWithValues: PushComparison.Finding.allCases.map {
                        ("\($0)", comparison.count($0, of: side))
                    })
            }
            return try JSONLine.of(
                Summary(
                    agreementPercent: (comparison.agreement ?? 0) * 100,
                    from: comparison.period?.lowerBound.rfc3339,
                    to: comparison.period?.upperBound.rfc3339,
                    windowSeconds: window / .seconds(1), old: counts(.old),
                    shadow: counts(.shadow)))
        }
    }

    private struct Summary: Encodable {
        let agreementPercent: Double
        let from, to: String?
        let windowSeconds: Double
        let old, shadow: [String: Int]
    }
}
