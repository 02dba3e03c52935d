// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What came of the events of each topic, and which subjects nobody shows.
@Suite struct `The tally of events` {
    private let fixture = PipelineFixture(bindings: [.standard, .standard]) { settings in
        settings.registrationGrace = .seconds(2)
        settings.events.allowKindWide = true
    }

    private func counts(topic: Int) -> [String: Int] {
        var counts: [String: Int] = [:]
        for outcome in EventTally.Outcome.allCases {
            counts["\(outcome)"] = fixture.pipeline.eventTally.count(outcome, topic: topic)
        }
        return counts.filter { $0.value > 0 }
    }

    private func subjects(topic: Int) -> [String] {
        fixture.pipeline.eventTally.sample(.unmatched, topic: topic).map(\.subject)
    }

    @Test func `an event is counted by its topic and by what came of it`() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door", binding: 1)
        for _ in 0..<2 { fixture.event("dor") }
        fixture.event("door", "{", binding: 1)
        fixture.event("door", #"{"expiresAt":"2001-01-01T00:00:00Z"}"#)
        fixture.pipeline.skippedRecord(of: fixture.assignment, offset: 99, now: fixture.now)
        #expect(counts(topic: 0) == ["unmatched": 2, "expired": 1, "skipped": 1])
        #expect(counts(topic: 1) == ["matched": 1, "unreadable": 1])
        #expect(fixture.counters.events == 5, "without the skipped one")
        #expect(
            [
                fixture.counters.eventsUnmatched, fixture.counters.eventsExpired,
                fixture.counters.eventsSkipped, fixture.counters.eventsUnreadable,
            ] == [2, 1, 1, 1])
    }

    @Test func `an event of whole kinds is matched where anybody shows one of them`() {
        fixture.registerControl("A", [1], shows: ["door"], kind: "light")
        fixture.event(nil, #"{"kinds":["fan","light"]}"#)
        fixture.event(nil, #"{"kinds":["fan"]}"#)
        #expect(counts(topic: 0) == ["matched": 1, "unmatched": 1])
        #expect(subjects(topic: 0).isEmpty, "it names no subject")
    }

    @Test func `an event that is split counts once, and each shard that Kafka refuses once more`() {
        let fixture = PipelineFixture { settings in
            settings.splitAbove = 2
            settings.shards = ShardTopic(binding: 0, partitions: 4)
        }
        for number in 1...3 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        fixture.event("door")
        func count(_ outcome: EventTally.Outcome) -> Int {
            fixture.pipeline.eventTally.count(outcome, topic: 0)
        }
        #expect(count(.split) == 1 && count(.matched) == 0)
        for shard in fixture.takeRecords() { fixture.pipeline.refused(shard.ticket) }
        fixture.pass(.milliseconds(1))
        #expect(count(.split) == 1 && count(.matched) == 4)
        #expect(fixture.counters.shardsRefused == 4 && fixture.deliverAll().count == 3)
    }

    @Test(arguments: [["fan", "light"], ["light", "fan"], ["fan", "none", "light"]])
    func `an event of several kinds is split if it is for one of them`(kinds: [String]) {
        let fixture = PipelineFixture { settings in
            settings.events.allowKindWide = true
            settings.splitAbove = 2
            settings.shards = ShardTopic(binding: 0, partitions: 4)
        }
        for number in 1...3 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"], kind: "fan")
        }
        fixture.registerControl("I4", [4], shows: ["door"], kind: "light")
        let names = kinds.map { "\"\($0)\"" }.joined(separator: ",")
        fixture.event(nil, #"{"kinds":[\#(names)]}"#)
        #expect(fixture.takeRecords().count == 4)
        #expect(fixture.pipeline.eventTally.count(.split, topic: 0) == 1)
        #expect(fixture.pipeline.eventTally.count(.matched, topic: 0) == 0)
    }

    @Test func `subjects that nobody shows are kept, ten a second of each topic`() {
        for number in 0..<30 {
            fixture.event("dor-\(number)")
            fixture.event("fan-\(number)", binding: 1)
            fixture.pass(.milliseconds(25))
        }
        #expect(counts(topic: 0) == ["unmatched": 30])
        let kept = ["dor-0", "dor-4", "dor-8", "dor-12", "dor-16", "dor-20", "dor-24", "dor-28"]
        #expect(subjects(topic: 0) == kept)
        #expect(subjects(topic: 1) == kept.map { $0.replacing("dor", with: "fan") })
    }

    @Test func `the sample has the latest subjects, each once with its last time`() {
        for number in 0..<20 {
            fixture.event("dor-\(number)")
            fixture.pass(.milliseconds(100))
        }
        fixture.event("dor-10")
        let sample = fixture.pipeline.eventTally.sample(.unmatched, topic: 0)
        #expect(sample.count == EventTally.sampleMax && sample.last?.at == fixture.now.wall)
        #expect(subjects(topic: 0) == (4..<20).filter { $0 != 10 }.map { "dor-\($0)" } + ["dor-10"])
    }

    @Test func `an event counts as unmatched though a token that registers afterwards gets it`() {
        fixture.event("door")
        fixture.registerControl("A", [1], shows: ["door"])
        #expect(fixture.deliverAll().count == 1)
        #expect(counts(topic: 0) == ["unmatched": 1])
    }
}
