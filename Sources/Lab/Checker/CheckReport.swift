// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The result of checking a run. `obligations` is the sum of `accepted`, `coalesced`, `expired`,
/// `suppressed`, `deadLettered`, `withdrawn`, `truncated` and `lost`.
package struct CheckReport: Decodable, Sendable {
    package struct Loss: Hashable, Sendable {
        package var event: Coordinates
        /// The token; nil for an unreadable event whose dead letter is missing.
        package var tokenID: TokenID?
        /// Whether the broker had dropped the event itself.
        package var isTruncated: Bool
        /// How many seconds after the event the registration was taken back: more than the settings'
        /// patience. Nil if it stands.
        package var withdrawnAfter: Int64?
    }

    package var events = 0
    /// The number of obligations: pairs of an event and a token that must get a push for it, and
    /// unreadable events, each of which must get a dead letter.
    package var obligations = 0
    /// Pairs ended by an accepted push that ended no earlier pair.
    package var accepted = 0
    /// Pairs ended by an accepted push that had already ended another pair.
    package var coalesced = 0
    package var expired = 0
    package var suppressed = 0
    package var deadLettered = 0
    /// Pairs whose registration was removed before a push was due.
    package var withdrawn = 0
    /// Pairs without an end whose event the broker dropped, so that the cause is unknown.
    package var truncated = 0
    package var lost = 0
    /// Pairs that may or may not be obligations, since the registration changed at about the time
    /// of the event. They are not counted in `obligations`.
    package var ambiguous = 0
    /// All accepted pushes, including those that ended no pair.
    package var acceptedPushes = 0
    /// Accepted pushes with an `apns-id` that was accepted before.
    package var duplicates = 0
    package var kills = 0
    package var pushesPerSecond = 0.0
    /// The median latency from event to accepted push; nil if nothing was accepted.
    package var p50ms: Double?
    package var p99ms: Double?
    /// Answers to tokens that are in no registration.
    package var strayAnswers = 0
    /// The first losses.
    package private(set) var losses: [Loss] = []
    /// Remarks on the inputs, one sentence each.
    package var notes: [String] = []

    package static let lossesMax = 20

    package init() {}

    package var isProven: Bool { lost == 0 && truncated == 0 }

    /// The members of `json`.
    private enum CodingKeys: String, CodingKey {
        case events, obligations, accepted, coalesced, expired, suppressed, deadLettered
        case withdrawn, truncated, lost, ambiguous, acceptedPushes, duplicates, kills
        case pushesPerSecond, p50ms, p99ms
    }

    mutating func lose(_ loss: Loss) {
        if loss.isTruncated { truncated += 1 } else { lost += 1 }
        if losses.count < Self.lossesMax { losses.append(loss) }
    }
}

extension CheckReport {
    /// The counts as one JSON object in one line: the members of the contract in its order, then
    /// `withdrawn`, `ambiguous`, `truncated` and `acceptedPushes`. Without samples a percentile is
    /// `null`.
    package var json: String {
        let members: [(String, String)] = [
            ("events", "\(events)"), ("obligations", "\(obligations)"),
            ("accepted", "\(accepted)"), ("coalesced", "\(coalesced)"),
            ("expired", "\(expired)"), ("suppressed", "\(suppressed)"),
            ("deadLettered", "\(deadLettered)"), ("lost", "\(lost)"),
            ("duplicates", "\(duplicates)"), ("kills", "\(kills)"),
            ("pushesPerSecond", Self.rounded(pushesPerSecond)),
            ("p50ms", p50ms.map(Self.rounded) ?? "null"),
            ("p99ms", p99ms.map(Self.rounded) ?? "null"),
            ("withdrawn", "\(withdrawn)"), ("ambiguous", "\(ambiguous)"),
            ("truncated", "\(truncated)"), ("acceptedPushes", "\(acceptedPushes)"),
        ]
        return "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }

    /// The value rounded to thousandths.
    private static func rounded(_ value: Double) -> String {
        "\((value * 1000).rounded() / 1000)"
    }

    /// The result in one line, for people.
    package var summary: String {
        let share = acceptedPushes == 0 ? 0 : Double(duplicates) / Double(acceptedPushes) * 100
        return "\(Self.grouped(obligations)) obligations · "
            + "\(kills) \(kills == 1 ? "kill" : "kills") · "
            + "\(Self.grouped(lost)) lost · "
            + (truncated == 0 ? "" : "\(Self.grouped(truncated)) dropped by the broker · ")
            + "\(Self.rounded(share)) % duplicates"
    }

    /// The number with commas between thousands.
    private static func grouped(_ count: Int) -> String {
        let digits = Array(String(count))
        return digits.indices.map { index in
            let isBoundary = index > 0 && (digits.count - index) % 3 == 0
            return (isBoundary ? "," : "") + String(digits[index])
        }.joined()
    }

    /// The notes, and the losses by coordinates and token IDs. No line contains a token.
    package var lines: [String] {
        var lines = notes.map { "note: \($0)" }
        for loss in losses {
            let what = loss.isTruncated ? "truncated" : "lost"
            let whose = loss.tokenID.map { "token \($0)" } ?? "its dead letter"
            let until = loss.withdrawnAfter.map { ", whose registration ended \($0) s after it" }
            lines.append("\(what): event \(loss.event), \(whose)\(until ?? "")")
        }
        let more = lost + truncated - losses.count
        if more > 0 { lines.append("and \(more) more") }
        return lines
    }
}
