// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation

/// Derives the figures from the processes' logs. Nothing is estimated: what was not measured is
/// nil.
struct DemoObserver {
    private var events: LogTail
    private var answers: LogTail
    private var reports: LogTail
    private(set) var owed: OwedPushes
    private(set) var traffic = TrafficReport(phase: .registering)
    private(set) var eventsProduced = 0
    var inFlight: Int?

    /// The totals of the last seconds, from which rates are computed.
    private var totals: [(at: ContinuousClock.Instant, events: Int, accepted: Int)] = []
    private var history: [Int] = []
    private var historyTotal = 0
    private var historyAt: ContinuousClock.Instant?

    private static let rateSpan = Duration.seconds(2)
    private static let historyMax = 60
    private static let latencySpan: Int64 = 5_000_000_000
    /// How long a changed door is shown bright, in nanoseconds.
    private static let lightSpan: Int64 = 700_000_000

    init(_ neighbourhood: Neighbourhood, events: String, answers: String, reports: String) {
        self.events = LogTail(path: events)
        self.answers = LogTail(path: answers)
        self.reports = LogTail(path: reports)
        owed = OwedPushes(neighbourhood)
    }

    /// Reads the new lines of all logs. Answers are read before events but counted after them, so
    /// that an answer usually finds its events.
    mutating func look(now: ContinuousClock.Instant) {
        reports.forEachNewLine { line in
            if let report = try? JSONDecoder().decode(TrafficReport.self, from: Data(line)) {
                traffic = report
            }
        }
        var outcomes: [LoggedOutcome] = []
        answers.forEachNewLine { line in
            if let outcome = LoggedOutcome(line) { outcomes.append(outcome) }
        }
        events.forEachNewLine { line in
            guard let event = LoggedEvent(line) else { return }
            eventsProduced += 1
            owed.eventProduced(event)
        }
        for outcome in outcomes { owed.answered(outcome) }
        keepTotals(now)
    }

    private mutating func keepTotals(_ now: ContinuousClock.Instant) {
        totals.append((now, eventsProduced, owed.accepted))
        while totals.count > 2, now - totals[0].at > Self.rateSpan { totals.removeFirst() }
        if historyAt == nil, owed.accepted > 0 { historyAt = now }
        while let at = historyAt, now - at >= .seconds(1) {
            history.append(owed.accepted - historyTotal)
            historyTotal = owed.accepted
            historyAt = at + .seconds(1)
            if history.count > Self.historyMax { history.removeFirst() }
        }
    }

    /// Fills in the figures.
    ///
    /// - Parameter wallNow: nanoseconds since 1970.
    func fill(_ figures: inout DemoFigures, wallNow: Int64) {
        figures.events = eventsProduced
        figures.accepted = owed.accepted
        if let first = totals.first, let last = totals.last, last.at > first.at {
            let seconds = (last.at - first.at) / .seconds(1)
            figures.eventsPerSecond = Int(Double(last.events - first.events) / seconds)
            figures.acceptedPerSecond = Int(Double(last.accepted - first.accepted) / seconds)
        }
        figures.refusals = owed.refusals.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { DemoFigures.Outcome(name: $0.key, count: $0.value) }
        figures.inFlight = inFlight
        figures.waiting = owed.waiting
        // After its end the traffic generator no longer measures the lag.
        figures.lag = traffic.phase == .running ? traffic.lag : nil
        let percentiles = owed.latencies.percentiles([50, 99], since: wallNow - Self.latencySpan)
        figures.p50ms = percentiles.map { $0[0] / .milliseconds(1) }
        figures.p99ms = percentiles.map { $0[1] / .milliseconds(1) }
        figures.door = DemoFigures.Door(
            isOpen: owed.door.isOpen,
            isLit: owed.door.litAt.map { wallNow - $0 < Self.lightSpan } ?? false,
            milliseconds: owed.door.latency.map { $0 / .milliseconds(1) })
        figures.history = history
    }
}
