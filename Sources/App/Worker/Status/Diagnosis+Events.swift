// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// What has become of events.
extension Diagnosis {
    /// The share of events that nobody shows from which a binding is under suspicion.
    private static let unmatchedShare = 0.9
    /// The fewest events of a comparison that means something.
    static let eventsMin = 10
    /// So many topics are named.
    private static let topicsMax = 3

    mutating func checkEvents() {
        checkDeadLetters()
        let found = status.unmatched.compactMap(suspicion)
        for one in found.sorted(by: { $0.unmatched > $1.unmatched }).prefix(Self.topicsMax) {
            report(
                .warning,
                "\(one.unmatched.withCommas) of \(one.events.counted("event")) \(one.period) named "
                    + "subjects that nobody shows\(one.example)",
                "if devices should show them, compare the subject with those of the registrations: "
                    + "check the binding of the topic (kafka.events) and the app")
        }
    }

    // MARK: Dead letters

    private mutating func checkDeadLetters() {
        let earlier = status.earlier
        let letters = status.counters.deadLettersWritten - earlier.counters.deadLettersWritten
        guard letters > 0 else { return }
        let recent = status.deadLetters.map { now in
            let before = earlier.deadLetters.first { $0.reason == now.reason }
            return (reason: now.reason, count: now.count - (before?.count ?? 0))
        }
        let most = recent.filter { $0.count > 0 }.max { $0.count < $1.count }
        var why = ""
        if let most {
            let share = most.count >= letters ? "all" : "most"
            why = letters == 1 ? ": \(most.reason)" : ", \(share) of them \(most.reason)"
        }
        report(
            .warning,
            "\(letters.counted("dead letter")) \(letters == 1 ? "was" : "were") written in the "
                + "last \(over.rounded)\(why)",
            Self.advice(most?.reason) + "see what failed and why with lamplighter dead-letters list"
        )
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

    // MARK: Unmatched subjects

    private struct Suspicion {
        var events: Int
        var unmatched: Int
        var period: String
        var example: String
    }

    /// What is suspicious of a topic's events; nil if enough of them are shown.
    private func suspicion(of topic: WorkerStatus.UnmatchedSubjects) -> Suspicion? {
        func count(_ counts: [WorkerStatus.EventCount], _ isCounted: (String) -> Bool) -> Int {
            counts.filter { $0.topic == topic.topic && isCounted($0.outcome) }
                .reduce(0) { $0 + $1.count }
        }
        let isUnmatched = { $0 == "unmatched" }
        let (now, before) = (status.events, status.earlier.events)
        var events = count(now) { _ in true } - count(before) { _ in true }
        var unmatched = count(now, isUnmatched) - count(before, isUnmatched)
        var period = "in the last \(over.rounded)"
        if events < Self.eventsMin {
            events = count(now) { _ in true }
            unmatched = count(now, isUnmatched)
            period = "since the start"
        }
        guard unmatched > 0, Double(unmatched) >= Double(events) * Self.unmatchedShare else {
            return nil
        }
        let last = topic.sample.last.map { ", such as \($0.subject.printable)" } ?? ""
        return Suspicion(
            events: events, unmatched: unmatched, period: period,
            example: "\(last) in \(topic.topic)")
    }
}
