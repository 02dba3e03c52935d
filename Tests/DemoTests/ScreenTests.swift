// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Demo screen` {
    /// A start, the middle of a run, and numbers that are larger than any run's.
    static let moments: [DemoFigures] = [DemoFigures(), .middle, .excessive]

    @Test(arguments: moments, [true, false])
    func `the demo screen fits 80 columns and 24 rows`(figures: DemoFigures, isColoured: Bool) {
        let rows = DemoScreen.rows(figures)
        #expect(rows.count == 24)
        for row in rows {
            let text = row.map { TerminalText.text($0, isColoured: isColoured) }.joined()
            #expect(Self.withoutCodes(text).count <= 80)
        }
    }

    @Test func `the demo screen has no code of a colour where none is wanted`() {
        let rows = DemoScreen.rows(.middle)
        let plain = TerminalText.screen(rows, isColoured: false)
        let coloured = TerminalText.screen(rows, isColoured: true)
        #expect(Self.withoutCodes(plain) == Self.withoutCodes(coloured))
        #expect(!plain.contains(/\u{1B}\[[0-9;]*m/))
        #expect(coloured.contains(/\u{1B}\[[0-9;]*m/))
    }

    @Test func `the demo screen shows what was measured, and a dash for what was not`() {
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

    @Test func `the demo screen shows the whole address of the page while there is traffic`() {
        var figures = DemoFigures.middle
        figures.page = "http://127.0.0.1:65535/"
        #expect(Self.text(figures).contains("· http://127.0.0.1:65535/"))
        figures.phase = .draining
        #expect(!Self.text(figures).contains("http"))
    }

    @Test func `the demo screen offers the keys that do something, and no others`() {
        func footer(_ phase: DemoFigures.Phase) -> String {
            var figures = DemoFigures.middle
            figures.phase = phase
            return DemoScreen.rows(figures).last!.map(\.text).joined()
        }
        #expect(footer(.running).contains("kill a worker") && footer(.running).contains(" q "))
        for phase in [DemoFigures.Phase.starting, .draining] {
            #expect(footer(phase).contains(" q ") && !footer(phase).contains("kill a worker"))
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

    @Test func `a line for the screen says the same in one row`() {
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
