// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// The dead-letters topic takes nothing for long: only what failed waits for it.
@Suite struct `An outage of dead letters` {
    private func fixture(adjust: (inout PipelineSettings) -> Void = { _ in }) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        fixture.registerControl("A", [1], shows: ["door"])
        return fixture
    }

    private func letters(_ fixture: PipelineFixture) throws -> [DeadLetter] {
        try fixture.takeRecords().filter { $0.topic == .deadLetters }
            .map { try $0.letter() }
    }

    @Test
    func `6,000 bad events take bounded memory, and good ones beside them are pushed at once`()
        throws
    {
        let fixture = fixture()
        fixture.checksEachCall = false
        let bad = "{" + String(repeating: "x", count: 60_000)
        var read = 0
        var delivered = 0
        for round in 0..<60 {
            // As the planner does it, which does not read where there is no room.
            for _ in 0..<100 where fixture.hasRoom {
                fixture.event("bad", bad)
                read += 1
            }
            if fixture.hasRoom {
                fixture.event("door")
                delivered += fixture.deliverAll().count
            } else if round > 3 {
                Issue.record("letters keep events waiting")
                return
            }
            #expect(fixture.letterBytes.bytes <= 32 << 20)
            fixture.pass(.milliseconds(500))
        }
        #expect(read > 5700 && delivered > 55)
        #expect(fixture.committableOffset == 0, "the first of them waits")
        fixture.registerControl("B", [2], shows: ["lamp"])
        fixture.event("lamp")
        #expect(fixture.deliverAll().map(\.token) == [[2]])

        // The topic is there again.
        var told = 0
        while !fixture.isIdle {
            let records = fixture.takeRecords()
            for record in records {
                let letter = try record.letter()
                told += letter.failures ?? 1
                #expect(letter.reason == "invalidJSON" && letter.source.topic == "events-0")
            }
            fixture.acknowledge(records)
            fixture.pass(.milliseconds(100))
        }
        #expect(told == read)
        #expect(fixture.committableOffset == Int64(read + delivered + 1))
        fixture.checkInvariants()
    }

    @Test(arguments: [true, false])
    func `reading waits for letters that go out fast, and not for slow ones`(areFast: Bool) {
        let fixture = fixture {
            $0.deadLetterBytesMax = 64 << 10
            $0.deadLetterEventBytesMax = 1024
        }
        fixture.checksEachCall = false
        let bad = "{" + String(repeating: "x", count: 1000)
        var turnsWithout = 0
        var waiting: [OutgoingRecord] = []
        for turn in 0..<100 {
            for _ in 0..<20 where fixture.hasRoom { fixture.event("bad", bad) }
            fixture.pass(.milliseconds(100))
            if turn >= 10, !fixture.hasRoom { turnsWithout += 1 }
            waiting += fixture.pipeline.takeRecords()
            let letters = waiting.prefix(areFast ? 10 : turn % 5 == 0 ? 1 : 0)
            waiting.removeFirst(letters.count)
            for letter in letters { fixture.pipeline.acknowledged(letter.ticket) }
        }
        #expect(areFast ? turnsWithout > 20 : turnsWithout == 0)
        #expect((fixture.counters.failuresMerged == 0) == areFast)
    }

    @Test func `letters go without their events first, and are merged last`() throws {
        let fixture = fixture {
            $0.deadLetterBytesMax = 16 << 10
            $0.deadLetterEventBytesMax = 4096
        }
        fixture.pass(.seconds(1))
        let events = 60
        for _ in 0..<events {
            fixture.event("bad", "{" + String(repeating: "x", count: 2000))
            fixture.pass(.milliseconds(600))
        }
        let written = try letters(fixture)
        let whole = written.prefix { $0.original != nil }
        #expect(whole.count == 2)
        let short = written.dropFirst(whole.count)
        #expect(!short.isEmpty && short.allSatisfy { $0.isOriginalLeftOut && $0.failures == nil })
        #expect(written.map(\.source.offset) == (0..<Int64(written.count)).map(\.self))
        #expect(fixture.letterBytes.bytes <= 16 << 10)
        #expect(fixture.counters.failuresMerged == events - written.count)
    }

    @Test func `a merged letter says how many failed and where, and holds the first of them`()
        throws
    {
        let fixture = fixture {
            $0.deadLetterBytesMax = 1
            $0.deadLetterTokensMax = 1
        }
        for number in 2...9 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        fixture.event("lamp")
        let began = fixture.now.wall
        for _ in 0..<3 {
            fixture.event("door")
            for push in fixture.take() { fixture.answer(push, 400, .badMessageId) }
        }
        #expect(fixture.committableOffset == 1)
        #expect(!fixture.isIdle)
        fixture.pass(.seconds(1))
        let record = try #require(fixture.takeRecords().first)
        let letter = try record.letter()
        #expect(letter.failures == 27 && letter.targets.isEmpty && letter.isOriginalLeftOut)
        #expect(letter.source.offset == 1 && letter.lastOffset == 3)
        #expect(letter.reason == "BadMessageId" && letter.status == 400)
        #expect(letter.firstAt == began)
        #expect(fixture.committableOffset == 1)
        fixture.acknowledge([record])
        #expect(fixture.committableOffset == 4 && fixture.isIdle)
    }

    @Test func `reasons beyond a thousand share a merged letter`() {
        var merged = MergedLetters()
        var tracker = OffsetTracker(registrationGrace: .zero)
        let source = DeadLetter.Source(topic: "events", partition: 0, offset: 1)
        let now = WallTime(milliseconds: 0)
        for number in 0..<5000 {
            let letter = DeadLetter(
                reason: "R\(number)", source: source, firstAt: now, lastAt: now)
            merged.add(letter, claims: [], &tracker)
        }
        #expect(merged.count == 1025 && merged.failures == 5000)
        var entries: [MergedLetters.Entry] = []
        while let entry = merged.takeOldest() { entries.append(entry) }
        #expect(merged.failures == 0)
        let most = entries.max { $0.letter.failures! < $1.letter.failures! }
        #expect(most?.letter.reason == "SeveralReasons" && most?.letter.failures == 5000 - 1024)
        #expect(merged.isEmpty && merged.failures == 0)
    }

    @Test func `a deferred push that fails ends in its row only with the merged letter`() throws {
        let fixture = fixture {
            $0.deadLetterBytesMax = 1
            $0.holdMax = .seconds(10)
        }
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        for token in ["01", "02"] {
            fixture.registerControl("D\(token)", Hexadecimal.decode(token)!, shows: ["lamp"])
            deferred.write(
                DeferredFixture.Record(
                    key: "production/com.example.Home.push-type.controls/\(token)",
                    value: #"{"v":1,"notBefore":"\#(fixture.now.wall.rfc3339)","#
                        + #""expiresAt":"\#((fixture.now.wall + .seconds(3600)).rfc3339)","#
                        + #""class":"control","attempts":0}"#))
        }
        deferred.read()
        fixture.pipeline.advance(now: fixture.now)
        for push in fixture.take() { fixture.answer(push, 400, .badMessageId) }
        #expect(fixture.takeRecords().isEmpty && fixture.load.deferred == 2)
        fixture.pass(.seconds(1))
        let records = fixture.takeRecords()
        #expect(records.map(\.topic) == [.deadLetters] && fixture.load.deferred == 2)
        fixture.acknowledge(records)
        fixture.pass(.zero)
        #expect(fixture.takeRecords().map(\.value) == ["", ""], "their tombstones")
        #expect(fixture.load.deferred == 0)
    }
}

extension PipelineFixture {
    fileprivate var hasRoom: Bool { pipeline.hasRoomForEvents }
    fileprivate var letterBytes: (records: Int, bytes: Int) { pipeline.waiting(for: .deadLetters) }
}
