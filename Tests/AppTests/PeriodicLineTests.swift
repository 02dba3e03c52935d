// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

@Suite struct `The periodic line of the log` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }

    private static func at(_ seconds: Int64) -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
            wall: WallTime(milliseconds: 1_795_000_000_000 + seconds * 1000))
    }

    private static let idle = FlowReport.Figures(load: PipelineLoad(), lag: 0)

    @Test func `what flows is told with rate, latency, lag and what waits`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        flow.report(figures, now: Self.at(0), logger: logger)
        #expect(lines.taken().isEmpty)
        figures.counters.events = 40
        figures.counters.accepted = 150
        figures.counters.pushesCoalesced = 7
        figures.counters.deadLettersWritten = 1
        figures.counters.deferred = 2
        figures.counters.handedOver = 151
        for milliseconds in [1, 1, 1, 100] as [Int64] {
            figures.eventToAccepted.add(nanoseconds: milliseconds * 1_000_000)
        }
        figures.lag = 12
        figures.load.oldestWaiting = .milliseconds(1234)
        (figures.load.queued, figures.load.resting) = (3, 1)
        (figures.load.inFlight, figures.load.deferred) = (5, 9)
        flow.report(figures, now: Self.at(5), logger: logger)
        #expect(
            lines.taken() == [
                "info delivering [accepted=150, acceptedPerSecond=30.0, coalesced=7, "
                    + "deadLetters=1, deferred=9, eventToAcceptedP50Ms=1.0, "
                    + "eventToAcceptedP99Ms=112.0, events=40, inFlight=5, lag=12, "
                    + "newlyDeferred=2, oldestWaitingSeconds=1.2, waiting=4]"
            ])
        // The next line is of what came after: latency too.
        figures.counters.accepted += 1
        figures.eventToAccepted.add(nanoseconds: 1_000_000)
        figures.load = PipelineLoad()
        figures.lag = nil
        flow.report(figures, now: Self.at(10), logger: logger)
        #expect(
            lines.taken() == [
                "info delivering [accepted=1, acceptedPerSecond=0.2, eventToAcceptedP50Ms=1.0, "
                    + "eventToAcceptedP99Ms=1.0, events=0]"
            ])
    }

    @Test func `an idle worker says so once a minute, and rates begin where it ends`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        figures.load.deferred = 9
        for second in stride(from: Int64(0), to: 600, by: 5) {
            flow.report(figures, now: Self.at(second), logger: logger)
            let told = lines.taken()
            #expect(
                told
                    == (second > 0 && second % 60 == 0
                        ? ["info no events [accepted=0, deferred=9, events=0, lag=0]"] : []))
        }
        flow.report(figures, now: Self.at(4995), logger: logger)
        _ = lines.taken()
        figures.counters.accepted = 5
        flow.report(figures, now: Self.at(5000), logger: logger)
        let told = lines.taken()
        #expect(told.first?.contains("acceptedPerSecond=1.0,") == true, "\(told)")
        flow.report(figures, now: Self.at(5005), logger: logger)
        #expect(lines.taken().allSatisfy { $0.hasPrefix("info totals") })
    }

    @Test func `a standstill is told at once and then ever less often, down to once a minute`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        flow.report(figures, now: Self.at(0), logger: logger)
        figures.load.claims = 1
        var times: [Int64] = []
        for second in stride(from: Int64(5), through: 300, by: 5) {
            // A probe a time, which changes nothing.
            figures.counters.handedOver += 1
            figures.counters.retried += 1
            flow.report(figures, now: Self.at(second), logger: logger)
            let told = lines.taken().filter { !$0.hasPrefix("info totals") }
            #expect(told.allSatisfy { $0.hasPrefix("info waiting ") })
            if !told.isEmpty { times.append(second) }
        }
        #expect(times == [5, 10, 20, 40, 80, 140, 200, 260])
        // As soon as something moves, every line comes.
        for second in [305, 310] as [Int64] {
            figures.counters.accepted += 1
            flow.report(figures, now: Self.at(second), logger: logger)
            #expect(lines.taken().contains { $0.hasPrefix("info delivering ") })
        }
        flow.report(figures, now: Self.at(315), logger: logger)
        #expect(lines.taken().count == 1, "the next standstill is told at once too")
    }

    @Test func `registrations alone are told ever less often`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        var told = 0
        for second in stride(from: Int64(0), to: 600, by: 5) {
            figures.counters.registrationsRead += 1
            flow.report(figures, now: Self.at(second), logger: logger)
            told += lines.taken().count { $0.hasPrefix("info no events ") }
        }
        #expect((10...14).contains(told), "\(told)")
    }

    @Test func `partitions that cannot be read are told though nothing flows`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        figures.unavailablePartitions = 2
        flow.report(figures, now: Self.at(0), logger: logger)
        #expect(
            lines.taken() == [
                "info waiting [accepted=0, events=0, lag=0, partitionsUnavailable=2]"
            ])
    }

    @Test func `a report that is asked for comes at once, with the totals`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        flow.askForReport()
        flow.report(figures, now: Self.at(0), logger: logger)
        flow.report(figures, now: Self.at(1), logger: logger)
        #expect(
            lines.taken() == [
                "info no events [accepted=0, events=0, lag=0]",
                "info totals since the start [accepted=0, events=0]",
            ])
        figures.load.claims = 1
        for second in 2..<4 as Range<Int64> {
            flow.askForReport()
            flow.report(figures, now: Self.at(second), logger: logger)
            #expect(lines.taken().count == 2, "a standstill too")
        }
    }
}

extension `The periodic line of the log` {
    /// Counters, each with another value than zero.
    private static func counted() -> Counters {
        var counters = Counters()
        withUnsafeMutableBytes(of: &counters) { bytes in
            let numbers = bytes.bindMemory(to: Int.self)
            for index in numbers.indices { numbers[index] = index + 1 }
        }
        return counters
    }

    @Test func `every counter is in the totals under its own name, once a minute if it has moved`()
    {
        var (flow, figures) = (FlowReport(), Self.idle)
        flow.report(figures, now: Self.at(0), logger: logger)
        figures.counters = Self.counted()
        #expect(
            MemoryLayout<Counters>.size == figures.counters.named.count * MemoryLayout<Int>.size)
        flow.report(figures, now: Self.at(60), logger: logger)
        let told = lines.taken()
        #expect(told.map { $0.prefix(9) } == ["info deli", "info tota"])
        let entries = told[1].replacing("[", with: " ").replacing("]", with: ",")
        for (name, value) in figures.counters.named {
            #expect(entries.contains(" \(name)=\(value),"))
        }
        figures.counters.eventsUnmatched += 1
        flow.report(figures, now: Self.at(60), logger: logger)
        #expect(lines.taken().allSatisfy { !$0.hasPrefix("info totals") })
        flow.reportTotals(figures.counters, logger: logger)
        #expect(
            lines.taken().map { $0.contains("eventsUnmatched=\(figures.counters.eventsUnmatched)") }
                == [true])
    }

    @Test func `the periodic line leaves out only the pipeline's own steps`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        flow.report(figures, now: Self.at(0), logger: logger)
        figures.counters = Self.counted()
        flow.report(figures, now: Self.at(5), logger: logger)
        let line = lines.taken().joined().replacing("]", with: ",")
        let absent = figures.counters.named.filter { !line.contains("=\($0.value),") }.map(\.name)
        #expect(
            Set(absent) == [
                "pushesQueued", "pushesUnqueued", "handedOver", "deferredRead", "deferredSent",
                "deferredEnded", "deferredRewritten", "payloadsForgotten",
            ])
    }

    @Test func `every figure of the periodic line is a number to a collector`() {
        var (flow, figures) = (FlowReport(), Self.idle)
        let logger = Logger(label: "test") { [lines] _ in FigureHandler(strings: lines) }
        flow.report(figures, now: Self.at(0), logger: logger)
        figures.counters = Self.counted()
        figures.eventToAccepted.add(nanoseconds: 1)
        figures.load.oldestWaiting = .seconds(1)
        figures.load.queued = 1
        flow.report(figures, now: Self.at(5), logger: logger)
        #expect(lines.taken() == ["delivering"], "no string among them")
    }
}

/// The message, and the names of metadata that a collector gets as strings.
private struct FigureHandler: LogHandler {
    let strings: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(strings: LogLines) { self.strings = strings }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        strings.append("\(event.message)")
        for (name, value) in event.metadata ?? [:] {
            if case .string = value { strings.append(name) }
        }
    }
}
