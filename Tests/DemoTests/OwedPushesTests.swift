// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Owed pushes` {
    private let neighbourhood = Neighbourhood(installations: 6)

    private func event(_ subject: String, at t: Int64) throws -> LoggedEvent {
        let line =
            #"{"t":\#(t),"topic":"e","partition":0,"offset":7,"app":"a","subject":"\#(subject)"}"#
        return try #require(LoggedEvent(Array(line.utf8)[...]))
    }

    private func answer(
        _ token: Int, at t: Int64, status: Int = 200, reason: String = ""
    ) throws -> LoggedOutcome {
        let hex = neighbourhood.token(token).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        let line =
            #"{"t":\#(t),"conn":1,"env":"production","topic":"x","token":"\#(hex)","#
            + #""apnsID":"i","status":\#(status),"reason":"\#(reason)"}"#
        return try #require(LoggedOutcome(Array(line.utf8)[...]))
    }

    private func latencies(_ owed: OwedPushes) -> [Duration]? {
        owed.latencies.percentiles([1, 100], since: 0)
    }

    @Test func `an installation was last pushed to when any of its tokens was`() throws {
        var owed = OwedPushes(neighbourhood)
        let token = { (sort: Neighbourhood.Sort) in neighbourhood.tokenNumber(sort, of: 1) }
        owed.answered(try answer(token(.widget), at: 2000))
        owed.answered(try answer(token(.control), at: 1500))
        owed.answered(
            try answer(token(.device), at: 3000, status: 429, reason: "TooManyRequests"))
        #expect(owed.acceptedLast(ofInstallations: 3) == [nil, 2000, nil])
        #expect(owed.acceptedLast(ofInstallations: 400).count == 6)
    }

    @Test func `each token of the audience waits until its own push is accepted`() throws {
        var owed = OwedPushes(neighbourhood)
        owed.eventProduced(try event("lamp-1", at: 1000))
        let audience = neighbourhood.audience(ofSubject: 3)
        #expect(owed.waiting == audience.count)
        for (index, token) in audience.enumerated() {
            owed.answered(try answer(token, at: 1010 + Int64(index)))
        }
        #expect(owed.waiting == 0)
        #expect(owed.accepted == audience.count)
        #expect(owed.acceptedFirstAt == 1010)
        let expected: [Duration] = [
            .nanoseconds(10), .nanoseconds(10 + audience.count - 1),
        ]
        #expect(latencies(owed) == expected)
    }

    @Test func `a push ends every older event of its token, and none that is younger`() throws {
        var owed = OwedPushes(neighbourhood)
        for t in [Int64(10), 20, 40] { owed.eventProduced(try event("lamp-1", at: t)) }
        let audience = neighbourhood.audience(ofSubject: 3)
        owed.answered(try answer(audience[0], at: 30))
        #expect(owed.waiting == 3 * audience.count - 2)
        #expect(latencies(owed) == [.nanoseconds(10), .nanoseconds(20)])
    }

    @Test func `an event that is read after its answer does not wait`() throws {
        var owed = OwedPushes(neighbourhood)
        let audience = neighbourhood.audience(ofSubject: 3)
        owed.answered(try answer(audience[0], at: 30))
        owed.eventProduced(try event("lamp-1", at: 25))
        #expect(owed.waiting == audience.count - 1)
        #expect(latencies(owed) == [.nanoseconds(5), .nanoseconds(5)])
    }

    @Test func `a refusal ends nothing but where the token is dead`() throws {
        var owed = OwedPushes(neighbourhood)
        owed.eventProduced(try event("lamp-1", at: 10))
        let audience = neighbourhood.audience(ofSubject: 3)
        owed.answered(try answer(audience[0], at: 20, status: 503, reason: "ServiceUnavailable"))
        #expect(owed.waiting == audience.count)
        owed.answered(try answer(audience[1], at: 20, status: 410, reason: "Unregistered"))
        #expect(owed.waiting == audience.count - 1)
        owed.eventProduced(try event("lamp-1", at: 30))
        #expect(owed.waiting == 2 * audience.count - 2)
        #expect(owed.refusals == ["503 ServiceUnavailable": 1, "410 Unregistered": 1])
    }

    @Test func `the drawn door changes when its own control has got its push`() throws {
        var owed = OwedPushes(neighbourhood)
        owed.eventProduced(try event("door-0", at: 1000))
        let control = neighbourhood.tokenNumber(.control, of: 0)
        for token in neighbourhood.audience(ofSubject: 0) where token != control {
            owed.answered(try answer(token, at: 2000))
        }
        #expect(!owed.door.isOpen)
        owed.answered(try answer(control, at: 4000))
        #expect(owed.door.isOpen)
        #expect(owed.door.latency == .nanoseconds(3000))
        owed.eventProduced(try event("door-0", at: 5000))
        owed.answered(try answer(control, at: 6000))
        #expect(!owed.door.isOpen)
    }

    @Test(arguments: ["", "{}", #"{"t":1}"#, "garbage \" \" \""])
    func `other lines of the log change no owed push`(line: String) {
        #expect(LoggedEvent(Array(line.utf8)[...]) == nil)
        #expect(LoggedOutcome(Array(line.utf8)[...]) == nil)
    }

    @Test func `percentiles are of the samples since then`() {
        var window = LatencyWindow()
        for number in 1...100 { window.add(.milliseconds(number), at: Int64(number)) }
        #expect(window.percentiles([50, 99], since: 0) == [.milliseconds(50), .milliseconds(99)])
        #expect(window.percentiles([50], since: 91) == [.milliseconds(95)])
        #expect(window.percentiles([50], since: 101) == nil)
    }

    @Test func `the window of samples forgets the oldest`() {
        var window = LatencyWindow()
        window.add(.seconds(9), at: 1)
        for _ in 0..<16_384 { window.add(.milliseconds(1), at: 1) }
        #expect(window.percentiles([100], since: 0) == [.milliseconds(1)])
    }

    @Test func `a log's tail hands out whole lines, each once`() throws {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "tail-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        var tail = LogTail(path: file.path)
        var lines: [String] = []
        func look() { tail.forEachNewLine { lines.append(String(decoding: $0, as: UTF8.self)) } }
        look()
        try Data("one\ntw".utf8).write(to: file)
        look()
        #expect(lines == ["one"])
        let writer = try FileHandle(forWritingTo: file)
        try writer.seekToEnd()
        writer.write(Data("o\nthree\n".utf8))
        try writer.close()
        look()
        look()
        #expect(lines == ["one", "two", "three"])
    }
}
