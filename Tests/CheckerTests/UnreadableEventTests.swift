// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Testing

/// Events that a producer knows to be unreadable.
@Suite struct `An unreadable event` {
    typealias Run = RecordedRun

    /// The run with one such event more, about a subject that two tokens show.
    private func judged(_ letters: [String], lowWatermark: Int64? = nil) throws -> CheckReport {
        var run = Run()
        run.events.append(Run.event(995, offset: 100, more: #","unreadable":true"#))
        run.deadLetters = letters
        run.lowWatermarks =
            lowWatermark.map {
                [#"{"topic":"events","partition":0,"low":\#($0)}"#]
            } ?? []
        return try run.judged()
    }

    private let letter = Run.deadLetter(
        offset: 100, tokens: [], attempts: 0, status: nil, reason: "InvalidJSON")

    @Test func `an unreadable event is owed a dead letter, and no push`() throws {
        let report = try judged([letter])
        #expect(report.isProven)
        #expect(report.obligations == 201)
        #expect(report.deadLettered == 1)
        #expect(report.accepted == 200)
    }

    @Test func `an unreadable event is lost without it`() throws {
        let report = try judged([])
        #expect(report.lost == 1)
        #expect(report.lines.contains("lost: event events/0/100, its dead letter"))
    }

    @Test func `an unreadable event is lost if only a push's or another event's letter names it`()
        throws
    {
        let push = Run.deadLetter(offset: 100, tokens: [0])
        #expect(try judged([push]).lost == 1)
        let other = Run.deadLetter(
            offset: 99, tokens: [], attempts: 0, status: nil, reason: "InvalidJSON")
        #expect(try judged([other]).lost == 1)
    }

    @Test func `an unreadable event is nobody's loss if the broker dropped it`() throws {
        let report = try judged([], lowWatermark: 101)
        #expect(report.lost == 0)
        #expect(report.truncated == 1)
        #expect(!report.isProven)
    }
}
