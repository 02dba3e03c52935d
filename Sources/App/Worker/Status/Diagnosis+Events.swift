// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// What has become of events.
extension Diagnosis {
    /// The share of events that reach nobody from which a binding is under suspicion.
    private static let suspiciousShare = 0.9
    /// The fewest events of a comparison that means something.
    static let eventsMin = 10
    /// So many topics are named.
    private static let topicsMax = 3

    mutating func checkEvents() {
        checkDeadLetters()
        checkShares()
        checkNotes()
        checkAbsences()
        for one in suspicions(status.unmatched, "unmatched") {
            report(
                .warning,
                "\(one.count.withCommas) of \(one.events.counted("event")) \(one.period) named "
                    + "subjects that nobody shows\(one.example)",
                "if devices should show them, compare the subject with those of the registrations: "
                    + "check the binding of the topic (kafka.events) and the app")
        }
        for one in suspicions(status.passedOver, "passedOver") {
            report(
                .warning,
                "\(one.count.withCommas) of \(one.events.counted("event")) \(one.period) named "
                    + "subjects that are shown, but by no token of their classes, kinds, "
                    + "environment or push type\(one.example)",
                "see which tokens show the subject, and why none is sent the event, with "
                    + "lamplighter explain --event; then correct the events, the binding of the topic "
                    + "(kafka.events) or what the app registers")
        }
    }

    private mutating func checkNotes() {
        let notes = status.recordNotes.map { note in
            let before = status.earlier.recordNotes.first {
                ($0.topic, $0.message) == (note.topic, note.message)
            }
            return WorkerStatus.RecordNoteCount(
                topic: note.topic, message: note.message, count: note.count - (before?.count ?? 0))
        }
        for note in notes.filter({ $0.count > 0 }).prefix(Self.topicsMax) {
            report(
                .warning,
                "\(note.count.counted("record")) of \(note.topic): \(note.message)",
                "see such records with lamplighter check --sample, and correct them or the topic's "
                    + "binding (kafka.events)")
        }
    }

    /// A condition whose field no record has is not one that rarely holds.
    private mutating func checkAbsences() {
        for absence in status.absences where absence.count >= Self.eventsMin {
            let events = status.events.filter { $0.topic == absence.topic }
                .reduce(0) { $0 + $1.count }
            guard absence.count == events else { continue }
            report(
                .warning,
                "all \(events.withCommas) events of \(absence.topic) since the start were left out by its "
                    + "binding, since none has \(absence.field)",
                "compare the field in `when` with a record (lamplighter check --sample): another case is "
                    + "another name, and Connect's converter with schemas has it under /payload")
        }
    }

    // MARK: Events that are not sent

    /// The share of a topic's events of the last seconds that expire or are left out, from which it is
    /// told of; and how many times as large as before that of those left out must be.
    private static let endedShareMin = 0.5
    private static let endedShareGrowth = 2.0
    private static let filteredMin = 100

    private mutating func checkShares() {
        for topic in Set(status.events.map(\.topic)).sorted() {
            if let grown = grownShare(of: "expired", topic) {
                report(
                    .warning,
                    "\(grown) of \(topic) had expired when they were read",
                    "compare the clock of what writes them and its expiresAt with the time that they "
                        + "take: a worker that is behind reads them late")
            }
            if let grown = grownShare(of: "filtered", topic) {
                report(
                    .warning,
                    "\(grown) of \(topic) were left out by its binding, which was not so before",
                    "see what has changed in the records: a field that is missing, an operation or a value "
                        + "that `when` does not name (lamplighter check --sample)")
            }
        }
    }

    /// How many of a topic's latest events came to this outcome, if they are to be told of; nil if not.
    private func grownShare(of outcome: String, _ topic: String) -> String? {
        func counts(_ all: [WorkerStatus.EventCount]) -> (found: Int, events: Int) {
            all.filter { $0.topic == topic }.reduce(into: (0, 0)) {
                $0.1 += $1.count
                if $1.outcome == outcome { $0.0 += $1.count }
            }
        }
        let (now, before) = (counts(status.events), counts(status.earlier.events))
        let (found, events) = (now.found - before.found, now.events - before.events)
        // Some records in a row that a binding leaves out are ordinary, such as those of a purge.
        let least = outcome == "expired" ? Self.eventsMin : Self.filteredMin
        guard events >= least, Double(found) >= Double(events) * Self.endedShareMin
        else { return nil }
        let share = Double(found) / Double(events)
        // A binding that leaves most events out does so from the first. None is meant to expire.
        let isNews =
            outcome == "expired"
            || before.events >= least
                && share >= Double(before.found) / Double(before.events) * Self.endedShareGrowth
        return isNews ? "\(found.withCommas) of the last \(events.counted("event"))" : nil
    }

    // MARK: Dead letters

    private mutating func checkDeadLetters() {
        let earlier = status.earlier
        let letters = status.counters.deadLettersWritten - earlier.counters.deadLettersWritten
        guard letters > 0 else { return }
        let recent = status.deadLetters.map { kind, count in
            (kind: kind, count: count - (earlier.deadLetters[kind] ?? 0))
        }
        let most = recent.filter { $0.count > 0 }
            .max { ($0.count, $1.kind.text) < ($1.count, $0.kind.text) }
        var why = ""
        if let most {
            let share =
                most.count >= letters
                ? "all" : most.count > letters / 2 ? "most" : most.count.withCommas
            why = (letters == 1 ? ": " : ", \(share) of them ") + most.kind.text
        }
        report(
            .warning,
            "\(letters.counted("dead letter")) \(letters == 1 ? "was" : "were") written in the "
                + "last \(over.rounded)\(why)",
            Self.advice(most?.kind.reason)
                + "see what failed and why with lamplighter dead-letters list")
    }

    /// The beginning of a remedy.
    private static func advice(_ reason: String?) -> String {
        switch reason {
        case "BadDeviceToken", "DeviceTokenNotForTopic":
            "compare the environment and the app of these registrations with the build that the "
                + "tokens come from; "
        default: ""
        }
    }

    // MARK: Events that reach nobody

    private struct Suspicion {
        var events: Int
        /// How many of them have the outcome.
        var count: Int
        var period: String
        var example: String
    }

    private func suspicions(
        _ topics: [WorkerStatus.UnmatchedSubjects], _ outcome: String
    ) -> [Suspicion] {
        Array(
            topics.compactMap { suspicion(of: $0, outcome) }
                .sorted { $0.count > $1.count }.prefix(Self.topicsMax))
    }

    /// What is suspicious of a topic's events; nil if enough of them have another outcome.
    private func suspicion(
        of topic: WorkerStatus.UnmatchedSubjects, _ outcome: String
    ) -> Suspicion? {
        func count(_ counts: [WorkerStatus.EventCount], _ isCounted: (String) -> Bool) -> Int {
            counts.filter { $0.topic == topic.topic && isCounted($0.outcome) }
                .reduce(0) { $0 + $1.count }
        }
        let isSuspicious = { $0 == outcome }
        let (now, before) = (status.events, status.earlier.events)
        var events = count(now) { _ in true } - count(before) { _ in true }
        var found = count(now, isSuspicious) - count(before, isSuspicious)
        var period = "in the last \(over.rounded)"
        if events < Self.eventsMin {
            events = count(now) { _ in true }
            found = count(now, isSuspicious)
            period = "since the start"
        }
        guard found > 0, Double(found) >= Double(events) * Self.suspiciousShare else { return nil }
        let last = topic.sample.last.map { ", such as \($0.subject.remarkedSubject)" } ?? ""
        return Suspicion(
            events: events, count: found, period: period,
            example: "\(last) in \(topic.topic)")
    }
}

extension LetterKind {
    fileprivate var text: String {
        topic.isEmpty ? reason : "\(reason) in \(topic.printable)"
    }
}
