// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OTLPExporter
import PushModel
import Testing

/// When metrics and spans are exported, in virtual time.
@Suite struct `An export's schedule` {
    private static func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    private func schedule(_ interval: Duration = .seconds(15)) -> ExportSchedule {
        ExportSchedule(interval: interval, seed: 1, now: Self.at(0))
    }

    /// Lets time pass in steps of half a second, as the exporter does.
    private func run(
        _ schedule: inout ExportSchedule, seconds: Range<Int>, spans: Int = 0,
        _ outcome: (ExportSignal, Double) -> (ExportOutcome, retryAfter: Duration)
    ) -> [(at: Double, signal: ExportSignal, news: ExportSchedule.News?)] {
        var exports: [(at: Double, signal: ExportSignal, news: ExportSchedule.News?)] = []
        for half in seconds.lowerBound * 2..<seconds.upperBound * 2 {
            let now = Double(half) / 2
            for signal in schedule.due(spans: spans, now: Self.at(now)) {
                let (outcome, retryAfter) = outcome(signal, now)
                let news = schedule.ended(
                    outcome, signal, retryAfter: retryAfter, now: Self.at(now))
                exports.append((now, signal, news))
            }
        }
        return exports
    }

    @Test func `metrics are exported at their interval, and no spans where there are none`() {
        var schedule = schedule()
        let exports = run(&schedule, seconds: 0..<61) { _, _ in (.delivered, .zero) }
        #expect(exports.map(\.at) == [15, 30, 45, 60])
        #expect(exports.allSatisfy { $0.signal == .metrics && $0.news == nil })
    }

    @Test func `spans are exported after five seconds, or at once if they are many`() {
        var schedule = schedule()
        let few = run(&schedule, seconds: 0..<14, spans: 1) { _, _ in (.delivered, .zero) }
        #expect(few.map(\.at) == [5, 10])
        #expect(schedule.due(spans: ExportSchedule.spansMany, now: Self.at(11)) == [.traces])
        #expect(schedule.due(spans: ExportSchedule.spansMany - 1, now: Self.at(11)).isEmpty)
    }

    @Test func `an interval below five seconds is the spans', too`() {
        var schedule = schedule(.seconds(2))
        let exports = run(&schedule, seconds: 0..<5, spans: 1) { _, _ in (.delivered, .zero) }
        #expect(exports.filter { $0.signal == .traces }.map(\.at) == [2, 4])
    }

    @Test(arguments: [ExportOutcome.refused, .unanswered])
    func `a collector that is away for an hour is asked ever more seldom, and told of each minute`(
        outcome: ExportOutcome
    ) {
        var schedule = schedule()
        let exports = run(&schedule, seconds: 0..<3600, spans: 2048) { _, _ in (outcome, .zero) }
        for signal in ExportSignal.allCases {
            let own = exports.filter { $0.signal == signal }
            #expect((12...60).contains(own.count), "\(own.count) exports")
            let pauses = zip(own, own.dropFirst()).map { $1.at - $0.at }
            #expect(pauses.allSatisfy { $0 <= 300.5 })
            #expect(own.first?.news == .fails)
            let told = own.filter { $0.news == .fails }.map(\.at)
            #expect(zip(told, told.dropFirst()).allSatisfy { $1 - $0 >= 60 })
            #expect(told.count > 5)
        }
        let later = run(&schedule, seconds: 3600..<4000, spans: 1) { _, _ in (.delivered, .zero) }
        #expect(later.filter { $0.news == .works }.count == 2)
        #expect(later.filter { $0.signal == .metrics }.count > 3, "the interval is as before")
    }

    @Test func `a collector is left alone as long as it asks to be`() {
        var schedule = schedule()
        let exports = run(&schedule, seconds: 0..<3000) { _, now in
            now < 100 ? (.refused, .seconds(1000)) : (.delivered, .zero)
        }
        #expect(exports.prefix(2).map(\.at) == [15, 1015])
    }

    @Test func `one signal that fails does not delay the other`() {
        var schedule = schedule()
        let exports = run(&schedule, seconds: 0..<120, spans: 600) { signal, _ in
            (signal == .traces ? .refused : .delivered, .zero)
        }
        #expect(
            exports.filter { $0.signal == .metrics }.map(\.at) == [15, 30, 45, 60, 75, 90, 105])
    }
}
