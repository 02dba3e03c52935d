// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Foundation
import Testing

@Suite struct `The checker` {
    typealias Run = RecordedRun

    @Test func `the checker proves a run that lost nothing`() throws {
        let report = try Run().judged()
        #expect(report.isProven)
        #expect(report.events == 100)
        #expect(report.obligations == 200)
        #expect(report.accepted == 200)
        #expect(report.coalesced == 0)
        #expect(report.duplicates == 0)
        #expect(report.lost == 0)
        #expect(report.notes.isEmpty)
    }

    @Test func `the checker misses one accepted line that was deleted`() throws {
        var run = Run()
        // The last push to the second token: no later one answers for its event.
        run.answers.removeLast()
        let report = try run.judged()
        #expect(report.lost == 1)
        #expect(report.accepted == 199)
        #expect(!report.isProven)
        let loss = try #require(report.losses.first)
        #expect(loss.event.description == "events/0/99")
        #expect(report.lines.contains { $0.contains("events/0/99") })
        #expect(!report.lines.contains { $0.contains(Run.tokens[1]) })
    }

    @Test func `the checker counts an event that a later push answered for as coalesced`() throws {
        var run = Run()
        run.answers.removeFirst(2)
        let report = try run.judged()
        #expect(report.lost == 0)
        #expect(report.accepted == 198)
        #expect(report.coalesced == 2)
    }

    @Test func `the checker counts an apns-id that was accepted twice as a duplicate`() throws {
        var run = Run()
        run.answers += [0, 1].map { Run.answer(2000, $0, id: 0) }
        run.answers.append(Run.answer(2001, 0, id: 0))
        let report = try run.judged()
        // The same id for another token is another push: so only two of token 0.
        #expect(report.duplicates == 2)
        #expect(report.lost == 0)
    }

    @Test func `the checker computes rates and percentiles of known times`() throws {
        var run = Run()
        run.events = (0..<100).map { Run.event(Int64($0) * 1000, offset: Int64($0)) }
        run.registrations = [Run.registration(at: -3_600_000, showing: [0])]
        // 1 to 100 ms after their events, in an order that is not sorted.
        run.answers = (0..<100).map { number in
            Run.answer(Int64(number) * 1000 + Int64((number * 37) % 100) + 1, 0, id: number)
        }
        let report = try run.judged()
        #expect(report.p50ms == 50)
        #expect(report.p99ms == 99)
        // From 1 ms to 99,064 ms.
        #expect(abs(report.pushesPerSecond - 100 / 99.063) < 0.001)
    }

    @Test func `the checker writes one line of JSON with every count of the contract`() throws {
        var run = Run()
        run.answers.removeLast()
        run.change = { $0.kills = 3 }
        let json = try run.judged().json
        #expect(!json.contains("\n"))
        let members = try #require(
            JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        let names = [
            "events", "obligations", "accepted", "coalesced", "expired", "suppressed",
            "deadLettered", "lost", "duplicates", "kills", "pushesPerSecond", "p50ms", "p99ms",
        ]
        for name in names { #expect(members[name] is NSNumber, "\(name)") }
        #expect(members["lost"] as? Int == 1)
        #expect(members["kills"] as? Int == 3)
        #expect(members["p50ms"] as? Double == 5)
    }

    @Test func `the checker keeps the first twenty losses and counts the others`() throws {
        var run = Run()
        run.answers = []
        let report = try run.judged()
        #expect(report.lost == 200)
        #expect(report.losses.count == 20)
        #expect(report.lines.last == "and 180 more")
        #expect(report.p50ms == nil)
        #expect(report.json.contains(#""p50ms":null"#))
    }

    // MARK: Inputs

    @Test func `the checker refuses a line that it cannot read, and names it`() throws {
        var run = Run()
        run.answers[7] = #"{"t":"soon"}"#
        let error = #expect(throws: UnreadableInput.self) { try run.judged() }
        #expect(error?.place.hasSuffix("answers, line 8") == true)
    }

    @Test func `the checker refuses a file that is not there`() throws {
        var run = Run()
        run.change = { $0.answers += ".not" }
        #expect(throws: UnreadableInput.self) { try run.judged() }
    }

    @Test func `the checker reads members in another order, with escapes and white space`() throws {
        var run = Run()
        let expected = try run.judged().json
        run.answers = try run.answers.map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            let data = try JSONSerialization.data(
                withJSONObject: object, options: [.sortedKeys, .prettyPrinted])
            return String(decoding: data, as: UTF8.self).replacing("\n", with: " ")
        }
        run.events = run.events.map { $0.replacing("door-1", with: #"door\u002d1"#) }
        #expect(try run.judged().json == expected)
    }

    @Test func `the checker leaves out what a killed writer had begun, and says so`() throws {
        let run = Run()
        let report = try run.inDirectory { directory in
            let events = try run.write(run.events, "events", directory)
            let file = try #require(FileHandle(forWritingAtPath: events))
            try file.seekToEnd()
            try file.write(contentsOf: Data(#"{"t":17950"#.utf8))
            try file.close()
            var check = DeliveryCheck(
                CheckSettings(
                    events: events, answers: try run.write(run.answers, "answers", directory),
                    registrations: .file(
                        try run.write(run.registrations, "registrations", directory))))
            return try check.run()
        }
        #expect(report.events == 100)
        #expect(report.lost == 0)
        #expect(report.notes.count == 1)
    }

    @Test func `the checker reads a log that is longer than its buffer`() throws {
        var run = Run()
        // 1.5 MiB: one chunk ends within a line.
        run.answers += (0..<7000).map { Run.answer(3000 + Int64($0), 0, id: 1000 + $0) }
        let report = try run.judged()
        #expect(report.lost == 0)
        #expect(report.acceptedPushes == 7200)
    }

    // MARK: Truncation

    @Test func `the checker says that the broker dropped an event that nobody was told of`() throws
    {
        var run = Run()
        run.events.append(Run.other)
        run.registrations.append(
            Run.registration(at: -3_600_000, subject: "door-2", handler: "Other"))
        run.answers = run.answers.map { $0.replacing(Run.tokens[0], with: Run.tokens[1]) }
        // Token 0 is told nothing of partition 1 or 0.
        run.lowWatermarks = [#"{"topic":"events","partition":1,"low":4}"#]
        let report = try run.judged()
        #expect(report.truncated == 1)
        #expect(report.lost == 100)
        #expect(!report.isProven)
        #expect(report.notes.contains { $0.contains("below offset 4 of events/1") })
    }

    @Test func `the checker says that offsets are missing from the log of events`() throws {
        var run = Run()
        run.events.remove(at: 50)
        let notes = try run.judged().notes
        #expect(notes == ["1 offsets of events/0 are in no line of the log of events"])
    }

    // MARK: Token IDs

    @Test(arguments: [
        ([], "e3b0c44298fc1c14"), (Array("abc".utf8), "ba7816bf8f01cfea"),
        (
            Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
            "248d6a61d20638b8"
        ),
        (Array(repeating: UInt8(ascii: "a"), count: 1000), "41edece42d63e8d9"),
    ])
    func `the checker names a token by its SHA-256`(message: [UInt8], expected: String) {
        #expect(TokenID(message).description == expected)
    }
}
