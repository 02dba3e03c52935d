// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// An answer that the script dictates to requests that are otherwise valid.
package struct ScriptedRule: Hashable, Sendable {
    /// The tokens that the rule applies to, by a prefix in lower-case hexadecimal; "" for all.
    package var tokenPrefix: String
    /// The connections that the rule applies to, by their numbers in the order in which they were
    /// opened, from 1; nil for all.
    package var connections: ClosedRange<Int>?
    /// The numeric address of the simulator's that the client must have connected to, such as
    /// `127.0.0.2`; nil for any.
    package var address: String?
    /// The share of the matching requests, from 0 to 1. They are spread evenly: each thread applies
    /// the rule to every 1/share-th of its own.
    package var share: Double
    package var answer: ScriptedAnswer
    /// How long the rule applies from when it is given; nil for until the rules are replaced.
    package var lasting: Duration?

    package init(
        tokenPrefix: String = "", connections: ClosedRange<Int>? = nil, address: String? = nil,
        share: Double = 1, answer: ScriptedAnswer, lasting: Duration? = nil
    ) {
        self.tokenPrefix = tokenPrefix.lowercased()
        self.connections = connections
        self.address = address
        self.share = min(max(share, 0), 1)
        self.answer = answer
        self.lasting = lasting
    }
}

package enum ScriptedAnswer: Hashable, Sendable {
    /// An error in Apple's form; the reason may be one that Apple does not have.
    case reason(UInt16, String)
    /// The same with the header `retry-after`, in seconds.
    case later(UInt16, String, retryAfterSeconds: UInt32)
    /// 410 with one of Apple's two reasons.
    case gone(String, ScriptedTimestamp)
    /// An error status without a body.
    case emptyBody(UInt16)
    /// An error page that is not Apple's.
    case html(UInt16)
    /// A reset of the stream with this HTTP/2 error code; nothing is answered or logged.
    case reset(UInt32)
    /// No answer ever.
    case silence

    /// The answer; nil for a reset or silence.
    func answer(wallMilliseconds: Int64) -> SimulatedAnswer? {
        switch self {
        case .reason(let status, let reason): SimulatedAnswer(status, reason)
        case .later(let status, let reason, let seconds):
            SimulatedAnswer(status, reason, retryAfterSeconds: seconds)
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
    /// Relative to the time of the answer; negative for a token that died earlier.
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

/// The rules in force on one thread, with how close each is to its next use.
struct Script {
    private struct Entry {
        let prefix: [UInt8]
        let connections: ClosedRange<Int>
        let address: String?
        let share: Double
        let answer: ScriptedAnswer
        /// When the rule ends, in monotonic nanoseconds.
        let until: Int64
        var owed: Double = 0
    }

    private var entries: [Entry] = []

    /// - Parameter now: monotonic nanoseconds.
    init(_ rules: [ScriptedRule], now: Int64) {
        for rule in rules { append(rule, now: now) }
    }

    mutating func append(_ rule: ScriptedRule, now: Int64) {
        entries.removeAll { $0.until <= now }
        entries.append(
            Entry(
                prefix: Array(rule.tokenPrefix.utf8), connections: rule.connections ?? 0...Int.max,
                address: rule.address, share: rule.share, answer: rule.answer,
                until: rule.lasting.map { now + $0.nanoseconds } ?? .max))
    }

    /// The answer of the first rule that applies to this request; nil if none does.
    /// - Parameters:
    ///   - connection: its number.
    ///   - address: the numeric address that the client connected to.
    mutating func next(
        token: [UInt8], on connection: Int, to address: String = "127.0.0.1", now: Int64
    ) -> ScriptedAnswer? {
        for index in entries.indices
        where entries[index].until > now
            && entries[index].connections.contains(connection)
            && (entries[index].address ?? address) == address
            && token.starts(with: entries[index].prefix)
        {
            entries[index].owed += entries[index].share
            // Sums of shares such as 0.1 fall short of 1 by rounding.
            guard entries[index].owed >= 1 - 1e-9 else { continue }
            entries[index].owed -= 1
            return entries[index].answer
        }
        return nil
    }
}
