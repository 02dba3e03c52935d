// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing
internal import Worker

@testable internal import lamplighter

@Suite struct `Lines for a screen` {
    private let lines = ["worker", "running: all is well", "index"]

    @Test func `lines that fit stay as they are`() {
        #expect(ScreenLines.fit(lines, columns: 20, rows: 3) == lines)
        #expect(ScreenLines.fit([""], columns: 20, rows: 3) == [""])
        #expect(ScreenLines.fit([], columns: 20, rows: 3) == [])
    }

    @Test func `a line that is too long goes on in the next row`() {
        #expect(
            ScreenLines.fit(lines, columns: 10, rows: 4)
                == ["worker", "running: a", "ll is well", "index"])
    }

    @Test func `the first rows are seen, and the last one says how many are missing`() {
        #expect(
            ScreenLines.fit(lines, columns: 40, rows: 2)
                == ["worker", "… and 2 rows more: enlarge the window"])
        #expect(
            ScreenLines.fit(lines, columns: 10, rows: 3) == ["worker", "running: a", "… and 2 ro"])
        for rows in -1...1 { #expect(ScreenLines.fit(lines, columns: 0, rows: rows).count == 1) }
    }
}
