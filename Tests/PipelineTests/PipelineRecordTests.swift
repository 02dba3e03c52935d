// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Records that the pipeline writes` {
    @Test func `failing tokens of one event share letters of bounded size`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 1500
            settings.immediateFanOutMax = 1400
        }
        fixture.checksEachCall = false
        let tokens = (0..<1201).map { [UInt8($0 >> 8), UInt8($0 & 255)] }
        for (number, token) in tokens.enumerated() {
            fixture.registerControl("I\(number)", token, shows: ["hot"])
        }
        fixture.event("hot")
        for push in fixture.take(1500) { fixture.answer(push, 400, .badMessageId) }
        fixture.pass(.seconds(3))
        let letters = fixture.takeRecords()
        #expect(letters.count == 3)
        let named = letters.map { $0.value.split(separator: #""token":"#).count - 1 }
        #expect(named.sorted() == [201, 500, 500])
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge(Array(letters.dropLast()))
        #expect(fixture.committableOffset == 0, "every letter of the event must be acknowledged")
        fixture.acknowledge([letters[2]])
        #expect(fixture.committableOffset == 1)
    }

    @Test func `a refused record is produced again and its offset waits`() {
        let fixture = PipelineFixture()
        fixture.event("door", "{")
        let first = fixture.takeRecords()
        fixture.pipeline.refused(first[0].ticket)
        let second = fixture.takeRecords()
        #expect(second.map(\.value) == first.map(\.value))
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge(second)
        #expect(fixture.committableOffset == 1)
        fixture.acknowledge(second)
        #expect(fixture.isIdle)
    }

    @Test func `a record that is too large shrinks, and is counted when even that fails`() {
        let fixture = PipelineFixture()
        fixture.event("door", "{")
        let ticket = fixture.takeRecords()[0].ticket
        fixture.pipeline.tooLarge(ticket)
        #expect(fixture.takeRecords().map(\.ticket) == [ticket])
        fixture.pipeline.tooLarge(ticket)
        #expect(fixture.counters.recordsAbandoned == 1)
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.isIdle)
    }

    @Test func `suppressions that Kafka does not take are bounded, and pushes go on`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 32
            settings.immediateFanOutMax = 4
            settings.unacknowledgedMax = 8
        }
        for number in 0..<200 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        fixture.event("hot")
        for _ in 0..<60 {
            fixture.pass(.milliseconds(10))
            for push in fixture.take(4) { fixture.answer(push, 410, .unregistered) }
        }
        #expect(fixture.load.unacknowledged == 8)
        #expect(fixture.counters.unregistered == 8 && fixture.counters.deadUnconfirmed == 192)
        fixture.acknowledge(fixture.takeRecords())
        // A token that was not suppressed for want of room tells again that it is dead.
        fixture.event("hot")
        for _ in 0..<60 {
            fixture.pass(.milliseconds(10))
            for push in fixture.take(4) { fixture.answer(push, 410, .unregistered) }
            fixture.acknowledge(fixture.takeRecords())
        }
        #expect(fixture.counters.unregistered == 200 && fixture.counters.suppressed == 8)
        #expect(fixture.isIdle)
    }

    @Test func `a skipped record holds nothing`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.pipeline.skippedRecord(of: fixture.assignment, offset: 0, now: fixture.now)
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 1)
        #expect(fixture.counters.eventsSkipped == 1)
    }

    @Test func `a partition that is no longer ours holds nothing, and its pushes are still sent`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.unassign()
        fixture.assign(startOffset: 0)
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 2)
    }

    @Test func `the letter of an unreadable record has its headers, so that it can be sent again`()
    {
        let fixture = PipelineFixture()
        Array("{".utf8).withUnsafeBytes { value in
            fixture.pipeline.eventRecord(
                EventRecord(binding: 0, key: nil, value: value, timestamp: fixture.now.wall),
                of: fixture.assignment, now: fixture.now
            ) { _ in
                nil
            } headers: {
                [("ce_id", Array("7".utf8)), ("raw", [0xFF])]
            }
        }
        let letters = fixture.takeRecords()
        #expect(letters.count == 1)
        #expect(
            letters[0].value.contains(
                #""headers":[{"name":"ce_id","value":"7"},{"name":"raw","valueBase64":"/w=="}]"#))
    }
}
