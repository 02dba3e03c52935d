// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A line of the events log, with the members that the view needs.
package struct LoggedEvent: Hashable, Sendable {
    /// When the event was produced, in nanoseconds since 1970.
    package var t: Int64
    package var subject: String

    /// Parses a line; nil if it has another format.
    package init?(_ line: ArraySlice<UInt8>) {
        let parts = QuotedParts(line)
        // {"t":1,"topic":"…","partition":0,"offset":0,"app":"…","subject":"…"}
        guard parts.count == 19, let t = parts.number(2) else { return nil }
        self.t = t
        subject = parts.text(17)
    }
}

/// A line of the simulator's log.
package struct LoggedOutcome: Hashable, Sendable {
    /// When the answer was decided, in nanoseconds since 1970.
    package var t: Int64
    /// The connection's number.
    package var connection: Int64
    /// The device token in hexadecimal.
    package var token: String
    package var apnsID: String
    package var status: Int
    /// The reason; empty if the push was accepted.
    package var reason: String

    /// Parses a line; nil if it has another format.
    package init?(_ line: ArraySlice<UInt8>) {
        let parts = QuotedParts(line)
        // {"t":1,"conn":1,"env":"…","topic":"…","token":"…","apnsID":"…","status":200,"reason":"…"}
        guard parts.count == 27, let t = parts.number(2), let connection = parts.number(4),
            let status = parts.number(22)
        else { return nil }
        self.t = t
        self.connection = connection
        token = parts.text(15)
        apnsID = parts.text(19)
        self.status = Int(status)
        reason = parts.text(25)
    }

    /// All whole lines of a log so far.
    package static func all(in path: String) throws -> [LoggedOutcome] {
        var outcomes: [LoggedOutcome] = []
        var unreadable = 0
        try LogTail.forEachLine(of: path) { line in
            if let outcome = LoggedOutcome(line) {
                outcomes.append(outcome)
            } else {
                unreadable += 1
            }
        }
        guard unreadable == 0 else {
            throw FleetError(description: "\(unreadable) lines of \(path) are no answers")
        }
        return outcomes
    }
}

/// A line of JSON in a fixed format without escapes, split at its quotation marks. Both logs have
/// thousands of lines a second, and the view must not cost more than what it shows.
private struct QuotedParts {
    private let parts: [ArraySlice<UInt8>]

    init(_ line: ArraySlice<UInt8>) {
        parts = line.split(separator: UInt8(ascii: "\""), omittingEmptySubsequences: false)
    }

    var count: Int { parts.count }

    func text(_ index: Int) -> String { String(decoding: parts[index], as: UTF8.self) }

    /// The number between `:` and `,`.
    func number(_ index: Int) -> Int64? {
        Int64(String(decoding: parts[index].dropFirst().dropLast(), as: UTF8.self))
    }
}
