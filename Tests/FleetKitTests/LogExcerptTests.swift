// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import FleetKit

@Suite struct `Log excerpt` {
    @Test func `a log excerpt shows where a crash begins, not the addresses it ends with`() {
        let backtrace = (0..<40).map { "\($0) 0x00007f frame" }.joined(separator: "\n")
        let log = """
            listening
            no port is free
            lamplighter/Kafka.swift:12: Fatal error: no broker
            Program crashed: Illegal instruction
            \(backtrace)
            """
        #expect(
            LogExcerpt.text(of: log)
                == "listening | no port is free | "
                + "lamplighter/Kafka.swift:12: Fatal error: no broker")
    }

    @Test func `a log excerpt of an end without a crash shows the last three lines`() {
        #expect(LogExcerpt.text(of: "1\n2\n3\n4\n") == "2 | 3 | 4")
        #expect(LogExcerpt.text(of: "").isEmpty)
    }

    @Test func `a path in the command that judges again stays one word`() {
        #expect(KeptEvidence.quoted("/run/demo-1/events.ndjson") == "/run/demo-1/events.ndjson")
        #expect(KeptEvidence.quoted("/run/it's here") == #"'/run/it'\''s here'"#)
    }

    @Test func `a log excerpt of several lines shows a crash, what led to it and its trace`() {
        let before = (0..<30).map { "line \($0)" }
        let trace = (0..<100).map { "frame \($0)" }
        let log = (before + ["Fatal error: x"] + trace).joined(separator: "\n")
        let lines = LogExcerpt.block(of: log).split(separator: "\n")
        #expect(lines.first == "line 20")
        #expect(lines.last == "frame 38")
        #expect(LogExcerpt.block(of: "a\nb") == "a\nb")
    }
}
