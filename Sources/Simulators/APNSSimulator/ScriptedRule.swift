// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// An answer that the script dictates to requests that are otherwise valid.
package struct ScriptedRule: Hashable, Sendable {
    /// Lowercase hexadecimal; "" applies to every token, a whole token to itself.
    package var tokenPrefix: String
    /// The share of the matching requests, 0 to 1. Spread evenly, not drawn: each thread answers
    /// every 1/share-th of its own.
    package var share: Double
    package var answer: ScriptedAnswer

    package init(tokenPrefix: String = "", share: Double = 1, answer: ScriptedAnswer) {
        self.tokenPrefix = tokenPrefix.lowercased()
        self.share = min(max(share, 0), 1)
        self.answer = answer
    }
}

package enum ScriptedAnswer: Hashable, Sendable {
    /// Apple's form; `reason` may be a word that Apple does not have.
    case reason(UInt16, String)
    /// 410 with one of Apple's two reasons.
    case gone(String, ScriptedTimestamp)
    /// An error status without a body.
    case emptyBody(UInt16)
    /// An error page that is not Apple's.
    case html(UInt16)
    /// The stream is reset with this HTTP/2 error code; nothing is answered and nothing logged.
    case reset(UInt32)
    /// No answer ever.
    case silence

    /// nil when the script says something else than an answer.
    func answer(wallMilliseconds: Int64) -> SimulatedAnswer? {
        switch self {
        case .reason(let status, let reason): SimulatedAnswer(status, reason)
        case .gone(let reason, let timestamp):
            SimulatedAnswer(
                410, reason, timestamp: timestamp.milliseconds(wall: wallMilliseconds))
        case .emptyBody(let status): SimulatedAnswer(status, "", form: .empty)
        case .html(let status): SimulatedAnswer(status, "", form: .html)
        case .reset, .silence: nil
        }
    }
}

/// The `timestamp` of a 410.
package enum ScriptedTimestamp: Hashable, Sendable {
    case absent
    /// Milliseconds since 1970.
    case at(Int64)
    /// So long after the answer; negative for before, as for a token that died long ago.
    case fromNow(Duration)

    func milliseconds(wall: Int64) -> Int64? {
        switch self {
        case .absent: return nil
        case .at(let milliseconds): return milliseconds
        case .fromNow(let offset):
            let (seconds, attoseconds) = offset.components
            return wall + seconds * 1000 + attoseconds / 1_000_000_000_000_000
        }
    }
}

/// The rules in force on one thread, and how far each is from its next turn.
struct Script {
    private let rules: [ScriptedRule]
    private let prefixes: [[UInt8]]
    private var owed: [Double]

    init(_ rules: [ScriptedRule]) {
        self.rules = rules
        prefixes = rules.map { Array($0.tokenPrefix.utf8) }
        owed = Array(repeating: 0, count: rules.count)
    }

    /// The first rule that applies to the token and whose turn it is.
    mutating func next(token: [UInt8]) -> ScriptedAnswer? {
        for index in rules.indices where token.starts(with: prefixes[index]) {
            owed[index] += rules[index].share
            // Sums of shares like 0.1 fall short of a whole by rounding.
            guard owed[index] >= 1 - 1e-9 else { continue }
            owed[index] -= 1
            return rules[index].answer
        }
        return nil
    }
}
