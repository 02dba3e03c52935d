// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// An event of more tokens than `fanOutMax` waits for an operator.
@Suite struct `Withheld events` {
    private func fixture(
        most: Int = 3, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.events.allowKindWide = true
            settings.fanOutMax = most
            adjust(&settings)
        }
        for number in 0..<4 as Range<UInt8> {
            fixture.registerControl(
                "I\(number)", [number], shows: ["all", number < 2 ? "first" : "last"])
        }
        return fixture
    }

    private func letters(_ fixture: PipelineFixture) throws -> [DeadLetter] {
        let records = fixture.takeRecords()
        fixture.acknowledge(records)
        return try records.map { try $0.letter() }
    }

    @Test func `the event is withheld with its whole record, and blocks nothing`() throws {
        let fixture = fixture()
        fixture.event("all", #"{"v":1,"id":"7"}"#)
        fixture.event("first")
        #expect(fixture.deliverAll().count == 2)
        let letter = try #require(try letters(fixture).first)
        #expect(letter.reason == "fanOutTooLarge" && letter.source.text == "events-0/0/0")
        #expect(letter.original?.key == Array("all".utf8))
        #expect(letter.original?.value == Array(#"{"v":1,"id":"7"}"#.utf8))
        #expect(letter.message?.contains("4 tokens") == true)
        #expect(letter.message?.contains("--event events-0/0/0") == true)
        #expect(fixture.committableOffset == 2 && fixture.isIdle)
        #expect(fixture.counters.eventsWithheld == 1 && fixture.counters.eventsUnreadable == 0)
        #expect(fixture.pipeline.withheldEvents.map(\.tokens) == [4])
        #expect(fixture.takeFailures().map(\.isWithheld) == [true])
    }

    @Test(arguments: [#"{"v":1,"kinds":["door"]}"#, #"{"v":1,"all":true}"#])
    func `tokens of a kind and of an app count too`(value: String) throws {
        let fixture = fixture()
        fixture.event(nil, value)
        #expect(fixture.take().isEmpty && fixture.counters.eventsWithheld == 1)
        let free = self.fixture(most: 8)
        free.event(nil, value)
        #expect(free.deliverAll().count == 4 && free.counters.eventsWithheld == 0)
    }

    @Test func `the tokens of all subjects of a record count`() throws {
        var binding = TopicBinding(decode: .json, subject: try SubjectTemplate("a-{/a}"))
        binding.subjects = [try SubjectTemplate("b-{/b}")]
        let fixture = PipelineFixture(bindings: [binding]) {
            $0.registrationGrace = .zero
            $0.fanOutMax = 2
        }
        fixture.register("W", [.widget([1], shows: ["a-1", "b-2"])])
        fixture.registerControl("C", [2], shows: ["b-2"])
        fixture.event(nil, #"{"a":1,"b":2}"#)
        #expect(fixture.take().isEmpty && fixture.counters.eventsWithheld == 1)
        fixture.event(nil, #"{"a":3,"b":2}"#)
        #expect(fixture.deliverAll().count == 2)
    }

    @Test
    func `a withheld event that the next owner reads again stays so, without a second letter`()
        throws
    {
        let fixture = fixture()
        fixture.assign(
            startOffset: 0, note: CommitNote(endedOffset: 1, registrations: [77]), nextOffset: 0)
        fixture.event("all")
        #expect(fixture.take().isEmpty && fixture.takeRecords().isEmpty)
        #expect(fixture.counters.eventsRemembered == 1)
        #expect(fixture.pipeline.withheldEvents.count == 1)
    }

    @Test func `the next owner writes a letter for newcomers to an event too large by now`() throws
    {
        // With three tokens the owner before has pushed it. It had not heard of the fourth.
        let fixture = fixture()
        let registrations = CommitNote(endedOffset: 1, registrations: [3])
        fixture.assign(startOffset: 0, note: registrations, nextOffset: 0)
        fixture.event("all", #"{"v":1,"id":"7"}"#)
        #expect(fixture.take().isEmpty && fixture.counters.eventsWithheld == 1)
        #expect(fixture.counters.eventsRemembered == 0)
        let letter = try #require(try letters(fixture).first)
        #expect(letter.reason == "fanOutTooLarge" && letter.original?.key == Array("all".utf8))
    }

    @Test func `a worker that loses the partition does not name its event for ever`() {
        let fixture = fixture()
        fixture.event("all")
        let other = fixture.newAssignment(ordinal: 9)
        fixture.pipeline.assigned(other, topic: 0, partition: 7, startOffset: 0)
        fixture.pipeline.unassigned([other])
        #expect(fixture.pipeline.withheldEvents.count == 1, "that of another partition stays")
        fixture.unassign()
        #expect(fixture.pipeline.withheldEvents.isEmpty)
    }

    @Test func `a released event is fanned out`() throws {
        let fixture = fixture()
        fixture.event("all")
        #expect(fixture.pipeline.withheldEvents.count == 1)
        fixture.event("all", headers: [DeadLetter.releasedHeader: "events-0/0/0"])
        #expect(fixture.deliverAll().count == 4 && fixture.pipeline.withheldEvents.isEmpty)
        #expect(fixture.counters.eventsWithheld == 1)
    }

    @Test func `a released event is not named any more, though nothing is withheld by now`() throws
    {
        let fixture = fixture()
        fixture.event("all")
        var settings = fixture.pipeline.state.settings
        settings.fanOutMax = .max
        try fixture.pipeline.adopt(settings.live, bindings: [.standard])
        fixture.event("all", headers: [DeadLetter.releasedHeader: "events-0/0/0"])
        #expect(fixture.deliverAll().count == 4 && fixture.pipeline.withheldEvents.isEmpty)
    }

    @Test func `the last few withheld events are named, each once`() {
        let fixture = fixture()
        for _ in 0..<9 { fixture.event("all") }
        let offsets = fixture.pipeline.withheldEvents.map(\.source.offset)
        #expect(offsets == [1, 2, 3, 4, 5, 6, 7, 8])
        fixture.event("all", headers: [DeadLetter.releasedHeader: "events-0/0/3"])
        #expect(!fixture.pipeline.withheldEvents.contains { $0.source.offset == 3 })
    }

    @Test func `tokens of a subject that an operator drops do not count`() {
        let fixture = fixture()
        fixture.restrict(.subject(Array("all".utf8), app: PipelineFixture.app), .drop)
        fixture.event("all")
        #expect(fixture.take().isEmpty && fixture.takeRecords().isEmpty)
        #expect(fixture.counters.eventsDropped == 1 && fixture.counters.eventsWithheld == 0)
    }

    @Test(arguments: ["events-0/0/9", "events-0/1/0", "events-1/0/0", "yes", "", "events-0/0/-1"])
    func `a header that is of no record before this one releases nothing`(header: String) {
        let fixture = fixture()
        fixture.event("all")
        fixture.event("all", headers: [DeadLetter.releasedHeader: header])
        #expect(fixture.take().isEmpty && fixture.counters.eventsWithheld == 2)
    }

    @Test func `neither an event that has expired is withheld nor a shard`() throws {
        let fixture = fixture()
        fixture.event("all", #"{"v":1,"expiresAt":"2020-01-01T00:00:00Z"}"#)
        #expect(fixture.counters.eventsWithheld == 0 && fixture.counters.eventsExpired == 1)
        let splitting = self.fixture(most: 1000) {
            $0.splitAbove = 2
            $0.shards = ShardTopic(binding: 0, partitions: 2)
        }
        splitting.event("all")
        let shards = splitting.takeRecords()
        #expect(shards.map(\.topic) == [.events, .events])
        var settings = splitting.pipeline.state.settings
        settings.fanOutMax = 1
        try splitting.pipeline.adopt(settings.live, bindings: [.standard])
        for shard in shards { splitting.event(shard.key, shard.value) }
        #expect(splitting.deliverAll().count == 4 && splitting.counters.eventsWithheld == 0)
    }

    @Test func `without a bound no event is withheld`() {
        let fixture = fixture(most: .max)
        fixture.event("all")
        #expect(fixture.deliverAll().count == 4)
    }
}
