// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A line of the events log, as the view needs it.
struct LoggedEvent: Hashable {
    /// Nanoseconds since 1970, from before the event was handed to Kafka.
    var t: Int64
    var subject: String

    /// Nil for what is no such line.
    init?(_ line: ArraySlice<UInt8>) {
        let parts = QuotedParts(line)
        // {"t":1,"topic":"…","partition":0,"offset":0,"app":"…","subject":"…"}
        guard parts.count == 19, let t = parts.number(2) else { return nil }
        self.t = t
        subject = parts.text(17)
    }
}

/// A line of the simulator's log, as the view needs it.
struct LoggedOutcome: Hashable {
    /// When the answer was decided, in nanoseconds since 1970.
    var t: Int64
    /// The first eight bytes of the token: enough to tell ours apart.
    var tokenPrefix: UInt64
    var status: Int
    /// Empty when the push was accepted.
    var reason: String

    /// Nil for what is no such line.
    init?(_ line: ArraySlice<UInt8>) {
        let parts = QuotedParts(line)
        // {"t":1,"conn":1,"env":"…","topic":"…","token":"…","apnsID":"…","status":200,"reason":"…"}
        guard parts.count == 27, let t = parts.number(2), let status = parts.number(22),
            let prefix = UInt64(parts.text(15).prefix(16), radix: 16)
        else { return nil }
        self.t = t
        tokenPrefix = prefix
        self.status = Int(status)
        reason = parts.text(25)
    }
}

/// A line of JSON in a fixed format and without escapes, cut at its quotation marks. Both logs have
/// thousands of lines a second, and the view may not cost more than what it shows.
private struct QuotedParts {
    private let parts: [ArraySlice<UInt8>]

    init(_ line: ArraySlice<UInt8>) {
        parts = line.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false)
    }

    var count: Int { parts.count }

    func text(_ index: Int) -> String { String(decoding: parts[index], as: UTF8.self) }

    /// The digits between `:` and `,`.
    func number(_ index: Int) -> Int64? {
        Int64(String(decoding: parts[index].dropFirst().dropLast(), as: UTF8.self))
    }
}
