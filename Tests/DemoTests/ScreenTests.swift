// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Demo screen` {
    /// A start, the middle of a run, and numbers that are larger than any run's.
    static let moments: [DemoFigures] = [DemoFigures(), .middle, .excessive]

    @Test(arguments: moments, [true, false])
    func `fits 80 columns and 24 rows`(figures: DemoFigures, isColoured: Bool) {
        let rows = DemoScreen.rows(figures)
        #expect(rows.count == 24)
        for row in rows {
            let text = row.map { TerminalText.text($0, isColoured: isColoured) }.joined()
            #expect(Self.withoutCodes(text).count <= 80)
        }
    }

    @Test func `has no code of a colour where none is wanted`() {
        let rows = DemoScreen.rows(.middle)
        let plain = TerminalText.screen(rows, isColoured: false)
        let coloured = TerminalText.screen(rows, isColoured: true)
        #expect(Self.withoutCodes(plain) == Self.withoutCodes(coloured))
        #expect(!plain.contains(/\u{1B}\[[0-9;]*m/))
        #expect(coloured.contains(/\u{1B}\[[0-9;]*m/))
    }

    @Test func `shows what was measured, and a dash for what was not`() {
        let middle = Self.text(.middle)
        for expected in [
            "1,234,567", "503 ServiceUnavailable", "p50 3.5 ms", "p99 1.2 s", "after 2.6 ms",
            "2 kills", "0:12 of 0:40",
        ] {
            #expect(middle.contains(expected), "\(expected)")
        }
        let start = Self.text(DemoFigures())
        #expect(start.contains("p50 –"))
        #expect(!start.contains("after"))
    }

    @Test func `offers the keys that do something, and no others`() {
        func footer(_ phase: DemoFigures.Phase) -> String {
            var figures = DemoFigures.middle
            figures.phase = phase
            return DemoScreen.rows(figures).last!.map(\.text).joined()
        }
        #expect(footer(.running).contains("kill -9") && footer(.running).contains(" q "))
        for phase in [DemoFigures.Phase.starting, .draining] {
            #expect(footer(phase).contains(" q ") && !footer(phase).contains("kill -9"))
        }
        #expect(footer(.judging).isEmpty && footer(.ended).isEmpty)
    }

    @Test func `a door that has just opened is lit`() {
        func isLit(_ door: DemoFigures.Door) -> Bool {
            DoorDrawing.rows(door).joined().contains { $0.style == .lit }
        }
        #expect(isLit(.init(isOpen: true, isLit: true, milliseconds: 3)))
        #expect(!isLit(.init(isOpen: true, isLit: false, milliseconds: 3)))
        let open = DoorDrawing.rows(.init(isOpen: true)).joined().map(\.text).joined()
        let closed = DoorDrawing.rows(.init(isOpen: false)).joined().map(\.text).joined()
        #expect(open.contains("open") && closed.contains("closed"))
    }

    @Test func `a line says the same in one row`() {
        let line = DemoLine.text(.middle)
        #expect(line.contains("1,234,567 pushes"))
        #expect(line.contains("lag –"))
        #expect(!line.contains("\n"))
    }

    @Test(arguments: [
        (0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567"),
        (100_000, "100,000"),
    ])
    func `thousands are set apart`(number: Int, text: String) {
        #expect(number.grouped == text)
    }

    private static func text(_ figures: DemoFigures) -> String {
        DemoScreen.rows(figures).map { $0.map(\.text).joined() }.joined(separator: "\n")
    }

    private static func withoutCodes(_ text: String) -> String {
        text.replacing(/\u{1B}\[[0-9;?]*[A-Za-z]/, with: "")
    }
}

extension DemoFigures {
    static var middle: DemoFigures {
        var figures = DemoFigures()
        figures.phase = .running
        figures.seconds = 12
        figures.duration = 40
        figures.installations = 3000
        figures.events = 1000
        figures.eventsPerSecond = 250
        figures.accepted = 1_234_567
        figures.acceptedPerSecond = 1700
        figures.refusals = [Outcome(name: "503 ServiceUnavailable", count: 7)]
        figures.inFlight = 3
        figures.p50ms = 3.5
        figures.p99ms = 1234
        figures.workers = [Worker(process: 1, seconds: 12), Worker(process: 2, seconds: 1)]
        figures.kills = 2
        figures.door = Door(isOpen: true, isLit: true, milliseconds: 2.6)
        figures.history = [0, 1, 1700, 900]
        figures.messages = ["0:10 kill -9 of worker 2 (process 3); another is started"]
        return figures
    }

    static var excessive: DemoFigures {
        var figures = DemoFigures.middle
        figures.seconds = .max
        figures.installations = .max
        figures.events = .max
        figures.eventsPerSecond = .max
        figures.accepted = .max
        figures.acceptedPerSecond = .max
        figures.refusals = (0..<9).map {
            Outcome(name: String(repeating: "R", count: 100), count: .max - $0)
        }
        figures.inFlight = .max
        figures.waiting = .max
        figures.lag = .max
        figures.p50ms = 1e12
        figures.p99ms = 1e12
        figures.workers = Array(repeating: Worker(process: .max, seconds: .max), count: 9)
        figures.history = Array(repeating: 1 << 40, count: 200)
        figures.messages = Array(repeating: String(repeating: "m", count: 200), count: 20)
        figures.result = String(repeating: "v", count: 200)
        return figures
    }
}
