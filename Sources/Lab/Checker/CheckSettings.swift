// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What is to be judged, and by which tolerances.
package struct CheckSettings {
    package enum Source: Hashable {
        /// An NDJSON dump, one `{"t":ms,"key":…,"value":…}` a line.
        case file(String)
        /// A topic of the cluster that `bootstrap` names.
        case topic(String)
    }

    package var events: String
    package var answers: String
    package var registrations: Source
    package var deadLetters: Source?
    package var suppressions: Source?
    /// NDJSON `{"topic":…,"partition":…,"low":…}`.
    package var lowWatermarks: String?
    /// `host:port,…`; nil when no source is a topic. It is asked for the low watermarks too, unless
    /// a file gives them.
    package var bootstrap: String?

    /// A registration recorded, or taken back, this close to an event counts either way. The
    /// worker's `index.registrationGrace`.
    package var registrationGrace = Duration.seconds(2)
    /// A registration taken back this long after an event still ends what was owed by it.
    package var patience = Duration.seconds(30)
    /// The life of a push whose event names none: the contract's 24 h.
    package var ttl = Duration.seconds(86_400)
    /// Nanoseconds since 1970 up to which expiry can have passed; the logs' last instant if nil.
    package var endedAt: Int64?
    /// Workers killed during the run; reported, not judged.
    package var kills = 0

    package init(events: String, answers: String, registrations: Source) {
        self.events = events
        self.answers = answers
        self.registrations = registrations
    }
}

extension CheckSettings {
    /// Lines of a log that are not empty.
    package static func lineCount(of path: String) throws(UnreadableInput) -> Int {
        var count = 0
        _ = try LogFile(path: path).forEachLine { (_) throws(LineProblem) in count += 1 }
        return count
    }
}

extension Duration {
    /// Rounded down; the largest `Int64` where it does not fit.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isOver) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !isOver else { return .max }
        let (sum, isTooLong) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLong ? .max : sum
    }
}
