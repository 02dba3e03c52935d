// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The inputs of a check, and its tolerances.
package struct CheckSettings {
    package enum Source: Hashable {
        /// An NDJSON dump with one `{"t":ms,"key":…,"value":…}` per line.
        case file(String)
        /// A topic of the cluster that `bootstrap` names.
        case topic(String)
    }

    package var events: String
    package var answers: String
    package var registrations: Source
    package var deadLetters: Source?
    package var suppressions: Source?
    /// The path of a file of low watermarks, NDJSON `{"topic":…,"partition":…,"low":…}`; nil for
    /// none.
    package var lowWatermarks: String?
    /// The Kafka to read topics from, `host:port,…`; nil if no source is a topic. The low
    /// watermarks are read from it too, unless a file gives them.
    package var bootstrap: String?

    /// A pair counts as ambiguous if its registration was written or removed this close to the
    /// event. This is the worker's `index.registrationGrace`.
    package var registrationGrace = Duration.seconds(2)
    /// How long after an event the removal of a registration still ends the event's pairs.
    package var patience = Duration.seconds(30)
    /// The lifetime of a push whose event sets none: 24 h by the contract.
    package var ttl = Duration.seconds(86_400)
    /// The time up to which pushes can have expired, in nanoseconds since 1970; nil for the last
    /// instant in the logs.
    package var endedAt: Int64?
    /// How many workers were killed during the run; only reported.
    package var kills = 0

    package init(events: String, answers: String, registrations: Source) {
        self.events = events
        self.answers = answers
        self.registrations = registrations
    }
}

extension CheckSettings {
    /// The number of lines in a log that are not empty.
    package static func lineCount(of path: String) throws(UnreadableInput) -> Int {
        var count = 0
        _ = try LogFile(path: path).forEachLine { (_) throws(LineProblem) in count += 1 }
        return count
    }
}

extension Duration {
    /// The nanoseconds, rounded down; the largest `Int64` if they do not fit.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isOver) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !isOver else { return .max }
        let (sum, isTooLong) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLong ? .max : sum
    }
}
