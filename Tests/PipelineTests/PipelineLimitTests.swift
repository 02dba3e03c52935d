// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What holds exactly at a bound, and on each side of it.
@Suite struct `Limits of the pipeline` {
    // MARK: Dead letters

    @Test
    func `a merged letter says when the last of its failures was, in whatever order they come`()
        throws
    {
        var merged = MergedLetters()
        var tracker = OffsetTracker(registrationGrace: .zero)
        let source = DeadLetter.Source(topic: "events", partition: 0, offset: 1)
        for milliseconds in [20, 40, 10, 30] as [Int64] {
            let time = WallTime(milliseconds: milliseconds)
            let letter = DeadLetter(
                reason: "BadMessageId", source: source, firstAt: time, lastAt: time)
            merged.add(letter, claims: [], &tracker)
        }
        let entry = merged.takeOldest()
        let letter = try #require(entry?.letter)
        #expect(letter.failures == 4)
        #expect(letter.firstAt == WallTime(milliseconds: 10))
        #expect(letter.lastAt == WallTime(milliseconds: 40))
    }

    @Test func `a letter whose event is too large only as JSON text goes without it`() throws {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.deadLetterBytesMax = 64 << 10
        }
        // There is room for its bytes, and none for as many escapes.
        fixture.event("bad", "{" + String(repeating: "\u{1}", count: 20_000))
        let records = fixture.takeRecords().filter { $0.topic == .deadLetters }
        let letter = try #require(records.first).letter()
        #expect(letter.reason == "invalidJSON")
        #expect(letter.original == nil && letter.isOriginalLeftOut)
    }

    @Test func `letters have room again once just half of it is free`() {
        let parts = PartsFixture { settings in
            settings.deadLetterBytesMax = 16 << 10
            settings.deadLetterEventBytesMax = 4096
        }
        let half = parts.state.settings.sizes.wholeLetterBytesMax / 2
        let value = [UInt8](repeating: 1, count: half - TicketTable.overhead - 1)
        for _ in 0..<2 {
            parts.outbox.write(RecordDraft(.deadLetters, key: [1], value: value))
        }
        parts.state.watchLetters(now: parts.now)
        let (all, isFull) = (parts.outbox.letterBytes, parts.outbox.watch.isFull)
        #expect(all == 2 * half && isFull)

        let ticket = parts.outbox.records[0].ticket
        parts.state.acknowledged(ticket)
        parts.state.watchLetters(now: parts.now)
        let (left, isStillFull) = (parts.outbox.letterBytes, parts.outbox.watch.isFull)
        #expect(left == half && !isStillFull)
    }

    // MARK: Deferred pushes

    @Test func `a mark that is on its way is waited for longer than the next one would be`() {
        var tracker = OffsetTracker(registrationGrace: .zero)
        let id = AssignmentID(ordinal: 0, epoch: 1)
        tracker.open(id, topic: 0, partition: 0, startOffset: 0)
        let began = MonotonicTime(nanoseconds: 5_000_000_000_000)
        tracker.received(id, offset: 0, now: began)
        let claim = tracker.claim(id)

        var marks = ReadMarks()
        #expect(marks.isDue(claim.epoch, now: began), "there has been none")
        marks.written(claim, saidAt: 3, sequence: 9, now: began)
        #expect(!marks.isDue(claim.epoch, now: began + .milliseconds(999)))
        #expect(marks.isDue(claim.epoch, now: began + .seconds(1)), "it may never be read")
        marks.read(claim, saidAt: 3)
        #expect(marks.isRead(9, of: claim.epoch))
        #expect(!marks.isDue(claim.epoch, now: began + .milliseconds(49)))
        #expect(marks.isDue(claim.epoch, now: began + .milliseconds(50)))
    }

    @Test func `a limit that lets many go has more rows become pushes than a probe needs`() {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.holdMax = .seconds(10)
        }
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        for n in 1...20 as ClosedRange<UInt8> {
            fixture.registerControl("I\(n)", [n], shows: ["s\(n)"])
        }
        fixture.restrict(.pushes(app: nil, tokenClass: .control), .limit(perSecond: 1000))
        fixture.pass(.milliseconds(100))
        let now = fixture.now.wall
        for n in 1...20 as ClosedRange<UInt8> {
            deferred.write(
                DeferredFixture.Record(
                    key: "production/com.example.Home.push-type.controls/"
                        + Hexadecimal.encode([n]),
                    value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                        + #""expiresAt":"\#((now + .seconds(3600)).rfc3339)","#
                        + #""class":"control","attempts":0}"#))
        }
        deferred.read()
        fixture.pass(.milliseconds(1))
        let queued = fixture.pipeline.state.pushes.queuedCount
        #expect(queued > HoldWatch.probesKept)
    }
}
