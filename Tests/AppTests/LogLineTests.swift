// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Logging
internal import PushModel
internal import Testing

@testable internal import Configuration
@testable internal import Worker
@testable internal import lamplighter

@Suite struct `A line of the log` {
    private let line = LogLine(
        time: WallTime(rfc3339: "2026-11-21T06:12:00.123Z")!, level: .warning,
        message: "pushes wait: \"x\"\nnext\u{1B}[2J",
        metadata: [
            "offset": .stringConvertible(Int64(12)), "share": .stringConvertible(0.25),
            "isShut": .stringConvertible(true), "installation": "0012", "empty": "",
            "of": "production home", "topics": .array(["a", .stringConvertible(UInt16(3))]),
        ])

    @Test func `JSON has the date, and numbers and truth values as such`() throws {
        #expect(
            line.json(
                source: LogSource(worker: "pod-7", version: "1.2.3", group: "lamplighter"))
                    == """
                    {"time":"2026-11-21T06:12:00.123Z","level":"warning","worker":"pod-7",\
                    "version":"1.2.3","group":"lamplighter","message":"pushes wait: \\"x\\"\\nnext\\u001b[2J",\
                    "metadata":{"empty":"","installation":"0012","isShut":true,\
                    "of":"production home","offset":12,"share":0.25,"topics":["a",3]}}
                    """)
    }

    @Test func `JSON says nothing of a source or of metadata that are not there`() {
        var line = line
        line.message = "stopped"
        line.metadata = [:]
        #expect(
            line.json(source: LogSource())
                == #"{"time":"2026-11-21T06:12:00.123Z","level":"warning","message":"stopped"}"#)
    }

    @Test func `what JSON cannot say as a number is a string`() {
        var line = line
        line.metadata = [
            "rate": .stringConvertible(Double.nan),
            "after": .stringConvertible(Duration.seconds(1)),
        ]
        #expect(
            line.json(source: LogSource()).hasSuffix(
                #""metadata":{"after":"1.0 seconds","rate":"nan"}}"#))
    }

    @Test func `text is one line with the date, and moves no cursor`() {
        #expect(
            line.text == #"""
                2026-11-21T06:12:00.123Z warning pushes wait: "x"\u{a}next\u{1b}[2J empty="" \#
                installation=0012 isShut=true of="production home" offset=12 share=0.25 \#
                topics=["a",3]
                """#)
    }

    @Test func `a worker is named by its static identity, else by host and process`() {
        var configuration = Configuration()
        #expect(configuration.workerName(host: "pod-a", process: 1) == "pod-a-1")
        configuration.kafka.groupInstanceID = "lamplighter-3"
        #expect(configuration.workerName(host: "pod-a", process: 1) == "lamplighter-3")
    }
}
