// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// By what an event is named whose pushes fail for good.
@Suite struct `Failed events` {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

    private func fixture(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        fixture.registerControl("A", [1], shows: ["door"])
        return fixture
    }

    private func letters(_ fixture: PipelineFixture) throws -> [DeadLetter] {
        fixture.pass(.seconds(1))
        return try fixture.takeRecords().filter { $0.topic == .deadLetters }.map { record in
            try record.letter()
        }
    }

    private func reject(_ fixture: PipelineFixture) {
        for push in fixture.take() { fixture.answer(push, 400, .badMessageId) }
    }

    @Test func `a dead letter has the id and the traceparent of its event`() throws {
        let fixture = fixture()
        fixture.event("door", #"{"id":"order-7"}"#, headers: ["traceparent": Self.traceparent])
        reject(fixture)
        fixture.event("door")
        reject(fixture)
        #expect(
            try letters(fixture).map(\.correlation)
                == [Correlation(id: "order-7", traceparent: Self.traceparent), .none])
    }

    @Test func `a dead letter names the oldest event of a push that answers for several`() throws {
        let fixture = fixture()
        for id in ["first", "second"] { fixture.event("door", "{\"id\":\"\(id)\"}") }
        reject(fixture)
        #expect(try letters(fixture).map(\.correlation.id) == ["first"])
    }

    @Test func `a dead letter of an event under a key alone has its traceparent if it is read`()
        throws
    {
        for (isRead, expected) in [(true, Self.traceparent), (false, nil)] {
            let fixture = fixture { $0.events.readsTraceparent = isRead }
            fixture.event("door", headers: ["traceparent": Self.traceparent])
            reject(fixture)
            #expect(try letters(fixture).map(\.correlation.traceparent) == [expected])
        }
    }

    @Test func `a dead letter of a record that cannot be read has what can be read of it`() throws {
        let fixture = fixture()
        fixture.event(
            "door", #"{"id":"order-7","priority":3}"#,
            headers: ["traceparent": Self.traceparent])
        let letter = try #require(try letters(fixture).first)
        #expect(letter.reason == "invalidPriority" || letter.reason == "invalidField")
        #expect(
            letter.correlation == Correlation(id: "order-7", traceparent: Self.traceparent))
    }

    @Test func `a shard goes on with the id and the traceparent of its event`() throws {
        let fixture = fixture { settings in
            settings.splitAbove = 1
            settings.shards = ShardTopic(binding: 0, partitions: 2)
        }
        fixture.registerControl("B", [2], shows: ["door"])
        fixture.event("door", #"{"id":"order-7"}"#, headers: ["traceparent": Self.traceparent])
        let shards = fixture.takeRecords()
        #expect(shards.map(\.traceparent) == [Self.traceparent, Self.traceparent])
        let reader = self.fixture()
        reader.registerControl("B", [2], shows: ["door"])
        for shard in shards {
            reader.event(shard.key, shard.value, headers: ["traceparent": Self.traceparent])
        }
        reader.pass(.milliseconds(1))
        reject(reader)
        for letter in try letters(reader) {
            #expect(
                letter.correlation == Correlation(id: "order-7", traceparent: Self.traceparent))
        }
    }

    // MARK: Samples for the log

    @Test func `failures are sampled once for each reason, and counted`() {
        let fixture = fixture()
        for number in 1...3 {
            fixture.event(
                "door", "{\"id\":\"e\(number)\"}", headers: ["traceparent": Self.traceparent])
            reject(fixture)
        }
        fixture.event("door", "{")
        fixture.pass(.seconds(1))
        let samples = fixture.takeFailures()
        #expect(samples.map(\.reason) == ["BadMessageId", "invalidJSON"])
        #expect(samples.map(\.count) == [3, 1])
        #expect(samples.map(\.isUnreadable) == [false, true])
        #expect(samples.first?.eventID == "e1")
        #expect(samples.first?.traceparent == Self.traceparent)
        #expect(samples.first?.app == PipelineFixture.app)
        #expect(samples.first?.source.offset == 0)
        #expect(fixture.takeFailures().isEmpty)
    }

    @Test func `failures of ever new reasons are sampled as one`() {
        var samples = FailureSamples()
        for number in 0..<100 {
            samples.note(
                DeadLetter(
                    reason: "reason \(number)",
                    source: DeadLetter.Source(topic: "t", partition: 0, offset: 0),
                    firstAt: WallTime(milliseconds: 0), lastAt: WallTime(milliseconds: 0)))
        }
        let taken = samples.take()
        #expect(taken.count == 33)
        #expect(taken.first { $0.reason == "SeveralReasons" }?.count == 68)
        #expect(taken.reduce(0) { $0 + $1.count } == 100)
    }

    @Test func `records that cannot be read are sampled as such though many are one letter`() {
        var samples = FailureSamples()
        for reason in ["BadMessageId", "SeveralReasons", "invalidJSON"] {
            var letter = DeadLetter(
                reason: reason, source: DeadLetter.Source(topic: "t", partition: 0, offset: 0),
                firstAt: WallTime(milliseconds: 0), lastAt: WallTime(milliseconds: 0))
            letter.failures = 7
            samples.note(letter)
        }
        let taken = samples.take()
        #expect(taken.map(\.count) == [7, 7, 7])
        #expect(taken.map(\.isUnreadable) == [false, false, true])
    }
}
