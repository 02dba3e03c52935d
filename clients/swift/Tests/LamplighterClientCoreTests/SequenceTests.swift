// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `A snapshot's sequence` {
    let folder: TemporaryFolder
    let clock = VirtualClock()

    init() throws { folder = try TemporaryFolder() }

    func outbox() -> Outbox {
        Outbox(folder: folder.url.appendingPathComponent("outbox"), now: { clock.now })
    }

    func put(_ outbox: Outbox, door: Int = 1) throws -> Snapshot {
        let address = try Address(
            environment: .production, app: "com.example.Garage", installation: "6F1C",
            tokenClass: .controls, handler: "A")
        return try #require(try outbox.put(address, .targets([.door(door)])))
    }

    @Test func `grows also within a millisecond and when the clock is set back`() throws {
        let outbox = outbox()
        var last = try put(outbox).sequence
        for seconds in [0.0, 0, -86_400, -400_000_000, 5, 0] {
            clock.advance(by: seconds)
            let next = try put(outbox).sequence
            #expect(next > last)
            last = next
        }
    }

    @Test func `is greater than before after the app was deleted and installed again`() throws {
        let before = try put(outbox()).sequence
        try FileManager.default.removeItem(at: folder.url.appendingPathComponent("outbox"))
        clock.advance(by: 60)
        #expect(try put(outbox()).sequence > before)
    }

    @Test func `begins with the milliseconds since 1970, and JSON carries it exactly`() throws {
        let snapshot = try put(outbox())
        #expect(snapshot.sequence == 1_780_000_000_000)
        let decoded = try JSONDecoder().decode(Snapshot.self, from: snapshot.encoded())
        #expect(decoded == snapshot)
    }

    @Test(arguments: ["", "{}", "not JSON", #"{"last":-5,"putLast":{},"notBefore":0}"#])
    func `goes on above what waits when its own file is lost`(_ state: String) throws {
        let outbox = outbox()
        let before = try put(outbox).sequence
        try Data(state.utf8).write(to: folder.url.appendingPathComponent("outbox/state.json"))
        clock.advance(by: -1_000_000)
        #expect(try put(outbox, door: 2).sequence > before)
    }

    @Test func `is raised above the one that the registrar has, and stays there`() throws {
        let outbox = outbox()
        let stale = try put(outbox)
        let stored = stale.sequence + 5_000_000
        let raised = try #require(try outbox.raise(stale, above: stored))
        #expect(raised.sequence == stored + 1 && raised.content == stale.content)
        #expect(try outbox.pending(of: "6F1C").snapshots == [raised])
        #expect(try put(outbox, door: 2).sequence > raised.sequence)
    }

    @Test func `of a snapshot that a newer one has replaced is not raised`() throws {
        let outbox = outbox()
        let stale = try put(outbox)
        let newer = try put(outbox, door: 2)
        #expect(try outbox.raise(stale, above: newer.sequence) == nil)
        #expect(try outbox.pending(of: "6F1C").snapshots == [newer])
    }

    @Test func `of a handler's snapshot that a complete set has replaced is not raised`() throws {
        let outbox = outbox()
        let stale = try put(outbox)
        var complete = stale.address
        complete.handler = nil
        try outbox.put(complete, .controls(["A": []]))
        #expect(try outbox.raise(stale, above: stale.sequence + 9) == nil)
    }

    @Test func `never leaves the range of JSON's integers`() throws {
        let outbox = outbox()
        let snapshot = try put(outbox)
        for stored in [Snapshot.sequenceMax, Snapshot.sequenceMax + 1, Int64.max] {
            #expect(throws: Outbox.SequenceExhausted.self) {
                try outbox.raise(snapshot, above: stored)
            }
        }
        #expect(try outbox.raise(snapshot, above: Int64.min)?.sequence ?? 0 > snapshot.sequence)
        clock.advance(by: 1e18)
        #expect(try put(outbox).sequence <= Snapshot.sequenceMax)
    }

    @Test func `is given once, whichever threads ask at the same time`() async throws {
        let outbox = outbox()
        let sequences = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for _ in 0..<4 {
                group.addTask { try (0..<20).map { try put(outbox, door: $0).sequence } }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(sequences).count == 80)
    }
}
