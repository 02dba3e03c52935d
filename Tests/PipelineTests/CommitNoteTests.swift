// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// What an owner of a partition tells the next one, and what that makes of it.
@Suite struct `A commit note` {
    /// A worker with the registrations of two controls, and the partition from offset 0 on.
    private func worker(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(adjust: adjust)
        fixture.registerControl("I1", [1], shows: ["door"])
        fixture.registerControl("I2", [2], shows: ["lamp"])
        return fixture
    }

    /// The worker gets the partition from one that had applied so many registrations.
    private func inherit(_ fixture: PipelineFixture, ended: Int64, registrations: Int64) {
        fixture.unassign()
        fixture.assign(
            startOffset: 0,
            note: CommitNote(endedOffset: ended, registrations: [registrations]), nextOffset: 0)
    }

    // MARK: The text

    @Test(arguments: [[], [0], [7, 0, 12_345_678_901]] as [[Int64]])
    func `a commit note is read as it was written`(registrations: [Int64]) throws {
        let note = CommitNote(endedOffset: 4711, registrations: registrations)
        let text = try #require(note.text(cluster: "one"))
        #expect(CommitNote(text, cluster: "one") == note)
        #expect(CommitNote(text, cluster: "other") == nil)
        #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    }

    @Test func `a commit note says how far spread events have come, if there is room`() throws {
        var note = CommitNote(endedOffset: 4711, registrations: [7, 0])
        note.spread = [(4711, 63, 64), (5000, 0, 4), (9_999_999_999, 255, 256)].map {
            CommitNote.SpreadEvent(offset: $0.0, progress: FanOutProgress(index: $0.1, count: $0.2))
        }
        let text = try #require(note.text(cluster: "one"))
        #expect(text == "v1 one 4711 7,0 4711:63/64,5000:0/4,9999999999:255/256")
        #expect(CommitNote(text, cluster: "one") == note && note.end == 10_000_000_000)
        // The release before wrote none of it, and the worker reads that.
        let before = try #require(CommitNote("v1 one 4711 7,0", cluster: "one"))
        #expect(before.spread.isEmpty && before.endedOffset == 4711)
        note.registrations = Array(repeating: 1_000_000_000, count: 370)
        let short = try #require(note.text(cluster: "one"))
        #expect(CommitNote(short, cluster: "one")?.spread == [])
    }

    @Test(arguments: [
        "v1 one 5 1 4:1/4", "v1 one 5 1 5:4/4", "v1 one 5 1 5:1/2048", "v1 one 5 1 5:1",
        "v1 one 5 1 5:1/4,", "v1 one 5 1 6:1/4,5:1/4", "v1 one 5 1 x:1/4", "v1 one 5 1 5:1/0",
        "v1 one 5 1 5:1/4 6",
        "", "v1", "v1 one", "v1 one 5", "v1 5 1", "v2 one 5 1", "v1 one 5 1,", "v1 one 5 ,1",
        "v1 one -5 1", "v1 one 5 -1", "v1 one 5 1 1", "v1 one x 1", "v1 one 99999999999999999999 1",
        "4711", "v1 one  5 1", "v1 on 5 1",
    ])
    func `a commit note that another program has written says nothing`(text: String) {
        #expect(CommitNote(text, cluster: "one") == nil)
    }

    @Test func `a commit note that a broker would refuse is not written`() {
        let many = CommitNote(
            endedOffset: 1, registrations: Array(repeating: 1_000_000_000, count: 380))
        #expect(
            CommitNote(endedOffset: 1, registrations: many.registrations.dropLast(20))
                .text(cluster: "one") != nil)
        #expect(many.text(cluster: "one") == nil)
    }

    // MARK: The owner before

    @Test func `an event that has ended is told as ended within its grace period`() {
        let fixture = worker()
        fixture.event("door")
        #expect(fixture.commitNote == nil)
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.commitNote == CommitNote(endedOffset: 1, registrations: [2]))
        #expect(fixture.committableOffset == 0)
        fixture.pass(.seconds(3))
        #expect(fixture.commitNote == nil && fixture.committableOffset == 1)
    }

    @Test func `an event is not told as ended while a late registration's push is under way`() {
        let fixture = worker()
        fixture.event("door")
        _ = fixture.deliverAll()
        fixture.registerControl("I3", [3], shows: ["door"])
        #expect(fixture.commitNote == nil)
        #expect(fixture.deliverAll().map(\.token) == [[3]])
        #expect(fixture.commitNote == CommitNote(endedOffset: 1, registrations: [3]))
    }

    // MARK: The next owner

    @Test func `an event that has ended under the owner before is not pushed again`() {
        let fixture = worker()
        inherit(fixture, ended: 2, registrations: 2)
        fixture.event("door")
        fixture.event("lamp", #"{"v":1,"ttlSeconds":60}"#)
        #expect(fixture.deliverAll().isEmpty && fixture.counters.eventsRemembered == 2)
        #expect(fixture.counters.events == 0)
        fixture.event("door")
        #expect(fixture.deliverAll().map(\.token) == [[1]] && fixture.counters.events == 1)
        #expect(fixture.committableOffset == 0)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 3 && fixture.isIdle)
    }

    @Test func `a record that the owner before could not read is no second dead letter`() {
        let fixture = worker()
        inherit(fixture, ended: 1, registrations: 2)
        fixture.event("door", "{")
        #expect(fixture.takeRecords().isEmpty && fixture.isIdle)
    }

    @Test(arguments: [nil, #"{"v":1,"ttlSeconds":60}"#])
    func `a token that the owner before had not heard of is pushed what had ended`(
        value: String?
    ) {
        let fixture = worker()
        fixture.registerControl("I3", [3], shows: ["door"])
        inherit(fixture, ended: 1, registrations: 2)
        fixture.event("door", value)
        #expect(fixture.commitNote == CommitNote(endedOffset: 1, registrations: [2]))
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0, "its push holds the event")
        #expect(fixture.deliverAll().map(\.token) == [[3]])
        #expect(fixture.committableOffset == 1 && fixture.isIdle)
    }

    @Test(arguments: [nil, #"{"v":1,"ttlSeconds":60}"#])
    func `a token that registers after the owner has changed is pushed what had ended before`(
        value: String?
    ) {
        let fixture = worker()
        inherit(fixture, ended: 1, registrations: 2)
        fixture.event("door", value)
        fixture.registerControl("I3", [3], shows: ["door"])
        #expect(fixture.deliverAll().map(\.token) == [[3]] && fixture.isIdle)
    }

    @Test func `a payload goes to a token that the owner before had not heard of`() {
        let fixture = worker()
        fixture.register("D", [.device([9], shows: ["score"])])
        inherit(fixture, ended: 2, registrations: 2)
        fixture.event("score", EventValue.alert("1"))
        fixture.event("score", EventValue.alert("2"))
        #expect(fixture.deliverAll().count == 2 && fixture.isIdle)
    }

    @Test func `a note is passed on by an owner that has not read as far`() {
        let fixture = worker()
        fixture.registerControl("I3", [3], shows: ["lamp"])
        inherit(fixture, ended: 5, registrations: 2)
        let note = CommitNote(endedOffset: 5, registrations: [2])
        #expect(fixture.commitNote == note)
        for _ in 0..<4 { fixture.event("door") }
        #expect(fixture.commitNote == note)
        fixture.event("door")
        fixture.event("door")
        _ = fixture.deliverAll()
        #expect(fixture.commitNote == CommitNote(endedOffset: 6, registrations: [3]))
    }

    @Test func `an event goes to all tokens when it is not known who is new`() {
        let fixture = worker { $0.recentRegistrationsMax = 2 }
        fixture.registerControl("I3", [3], shows: ["door"])
        inherit(fixture, ended: 1, registrations: 0)
        fixture.event("door")
        #expect(fixture.deliverAll().map(\.token).inOrder == [[1], [3]])
        #expect(fixture.isIdle)
    }

    @Test func `an event goes to all tokens when very many are new`() {
        let fixture = worker { $0.immediateFanOutMax = 2 }
        for number in 3...5 as ClosedRange<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["door"])
        }
        inherit(fixture, ended: 1, registrations: 2)
        fixture.event("door")
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().count == 4 && fixture.isIdle)
    }

    @Test func `a new token waits for a slot, and its event is held meanwhile`() {
        let fixture = PipelineFixture {
            $0.slots = 1
            $0.immediateFanOutMax = 4
        }
        fixture.registerControl("I1", [1], shows: ["door"])
        fixture.registerControl("I2", [2], shows: ["lamp"])
        fixture.registerControl("I3", [3], shows: ["door"])
        inherit(fixture, ended: 1, registrations: 0)
        fixture.event("door")
        #expect(fixture.commitNote?.endedOffset == 1, "the note of the owner before")
        #expect(fixture.deliverAll().count == 1)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        #expect(fixture.deliverAll().count == 1)
        #expect(fixture.committableOffset == 1 && fixture.isIdle)
    }

    @Test func `a note that is given up with its partition has no effect on the next assignment`() {
        let fixture = worker()
        inherit(fixture, ended: 9, registrations: 2)
        fixture.unassign()
        fixture.assign(startOffset: 0, nextOffset: 0)
        fixture.event("door")
        #expect(fixture.deliverAll().map(\.token) == [[1]])
    }
}
