// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// The spans of sampled events, and their bounds.
@Suite struct `Traced events` {
    static let sampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    static let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

    private func fixture(
        controls: Int = 1, ratio: Double = 0, trace: (inout TraceSettings) -> Void = { _ in },
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.events.readsTraceparent = true
            var tracing = TraceSettings(ratio: ratio) { "token \($0[0])" }
            trace(&tracing)
            settings.tracing = tracing
            adjust(&settings)
        }
        for number in 0..<controls {
            fixture.registerControl("I\(number)", [UInt8(number + 1)], shows: ["hot"])
        }
        return fixture
    }

    private func sampledEvent(_ fixture: PipelineFixture, _ subject: String = "hot") {
        fixture.event(subject, headers: ["traceparent": Self.sampled])
    }

    /// The spans that have ended after some time without a fact.
    private func spans(_ fixture: PipelineFixture, after time: Duration = .milliseconds(10))
        -> [Span]
    {
        fixture.pass(time)
        return fixture.takeSpans()
    }

    @Test func `what is traced takes the memory that the metrics say`() {
        let fixture = fixture()
        func bytes() -> Int? {
            fixture.pipeline.memory.first { $0.part == "traces" }?.bytes
        }
        #expect(bytes() == 0)
        sampledEvent(fixture)
        let followed = bytes() ?? 0
        #expect(followed > 300 && followed < 3000)
        _ = fixture.deliverAll()
        fixture.pass(.milliseconds(10))
        #expect(bytes() ?? 0 > followed, "three spans")
        _ = fixture.takeSpans()
        #expect(bytes() == 0)
    }

    // MARK: What they say

    @Test func `an event, its plan and its push are spans, each within the one before`() throws {
        let fixture = fixture()
        fixture.event(
            "hot", #"{"id":"e1"}"#, headers: ["traceparent": Self.sampled])
        let start = fixture.now.monotonic
        fixture.pass(.milliseconds(10))
        let push = try #require(fixture.take().first)
        let sentAt = fixture.now.monotonic
        fixture.pass(.milliseconds(30))
        fixture.answer(push, 200)
        let all = fixture.takeSpans() + spans(fixture)
        try #require(all.map(\.name) == ["plan", "push", "event"])
        let (plan, request, event) = (all[0], all[1], all[2])
        for span in all { #expect(span.trace.text == "4bf92f3577b34da6a3ce929d0e0e4736") }
        #expect(event.parent?.text == "00f067aa0ba902b7")
        #expect(plan.parent == event.id && request.parent == plan.id)
        #expect(Set(all.map(\.id)).count == 3)
        #expect(all.map(\.kind) == [.internal, .client, .consumer])
        #expect(event.start == start && plan.start == start)
        // The fixture says that a push is sent when it is answered.
        #expect(request.end == sentAt + .milliseconds(30) && request.start <= request.end)
        #expect(event.end >= request.end)
        #expect(all.allSatisfy { $0.failure == nil })
        #expect(
            event.attributes.map(\.name) == [
                "messaging.system", "messaging.operation.type", "messaging.destination.name",
                "messaging.destination.partition.id", "messaging.kafka.offset",
                "messaging.message.id", "lamplighter.outcome", "lamplighter.age_ms",
                "lamplighter.requests",
            ])
        #expect(event["messaging.destination.name"] == .text("events-0"))
        #expect(event["messaging.kafka.offset"] == .integer(0))
        #expect(event["messaging.message.id"] == .text("e1"))
        #expect(event["lamplighter.outcome"] == .text("matched"))
        #expect(event["lamplighter.requests"] == .integer(1))
        #expect(plan["lamplighter.pushes.queued"] == .integer(1))
        #expect(request["apns.id"] == .text(push.apnsID.text))
        #expect(request["apns.push_type"] == .text("controls"))
        #expect(request["apns.topic"] == .text("\(PipelineFixture.app).push-type.controls"))
        #expect(request["apns.environment"] == .text("production"))
        #expect(request["lamplighter.app"] == .text(PipelineFixture.app))
        #expect(request["lamplighter.token_id"] == .text("token 1"))
        #expect(request["lamplighter.attempt"] == .integer(1))
        #expect(request["http.response.status_code"] == .integer(200))
    }

    @Test func `a refused push says why, and its event lasts until the dead letter is written`() {
        let fixture = fixture()
        sampledEvent(fixture)
        for push in fixture.take() { fixture.answer(push, 400, .badMessageId) }
        let before = spans(fixture, after: .seconds(1))
        #expect(before.map(\.name) == ["push", "plan"])
        #expect(before.first?.failure == "BadMessageId")
        #expect(before.first?["apns.reason"] == .text("BadMessageId"))
        #expect(before.first?["http.response.status_code"] == .integer(400))
        fixture.acknowledge(fixture.takeRecords())
        #expect(spans(fixture).map(\.name) == ["event"])
    }

    @Test func `each try is a span`() throws {
        let fixture = fixture()
        sampledEvent(fixture)
        fixture.answer(try #require(fixture.take().first), 503, .serviceUnavailable)
        fixture.pass(.seconds(2))
        fixture.answer(try #require(fixture.take().first), 200)
        let all = spans(fixture)
        let tries = all.filter { $0.name == "push" }
        #expect(tries.map { $0["lamplighter.attempt"] } == [.integer(1), .integer(2)])
        #expect(tries.map(\.failure) == ["ServiceUnavailable", nil])
        #expect(all.last?["lamplighter.requests"] == .integer(2))
    }

    @Test func `a push that was never sent is no span`() throws {
        let fixture = fixture()
        sampledEvent(fixture)
        fixture.end(try #require(fixture.take().first), .unprocessed)
        #expect(spans(fixture).map(\.name) == ["plan"])
    }

    @Test func `an event of another trace that joins a waiting push tells that it has joined`() {
        let fixture = fixture()
        fixture.event("hot")
        sampledEvent(fixture)
        #expect(fixture.deliverAll().count == 1)
        let all = spans(fixture)
        #expect(all.map(\.name) == ["plan", "event"])
        #expect(all.first?["lamplighter.pushes.queued"] == .integer(0))
        #expect(all.first?["lamplighter.pushes.coalesced"] == .integer(1))
    }

    @Test func `an event without effect says so`() {
        let fixture = fixture()
        sampledEvent(fixture, "nobody-shows-this")
        fixture.event(
            "hot", #"{"expiresAt":"2000-01-01T00:00:00Z"}"#,
            headers: ["traceparent": Self.sampled])
        fixture.event("hot", "{", headers: ["traceparent": Self.sampled])
        fixture.pass(.seconds(1))
        fixture.acknowledge(fixture.takeRecords())
        let events = spans(fixture).filter { $0.name == "event" }
        #expect(
            events.map { $0["lamplighter.outcome"] }
                == [.text("unmatched"), .text("expired"), .text("unreadable")])
        #expect(events.map(\.failure) == [nil, nil, "invalidJSON"])
    }

    @Test func `the plan of an event with many tokens lasts until all are visited`() {
        let fixture = fixture(controls: 40) { _ in
        } adjust: {
            $0.immediateFanOutMax = 4
        }
        sampledEvent(fixture)
        let start = fixture.now.monotonic
        #expect(fixture.takeSpans().isEmpty)
        let plan = spans(fixture).first ?? spans(fixture).first
        #expect(plan?.name == "plan")
        #expect(plan?["lamplighter.pushes.queued"] == .integer(40))
        #expect(plan.map { $0.end > start } == true)
        _ = fixture.deliverAll()
        #expect(spans(fixture).last?.name == "event")
    }

    @Test func `the shards of an event name its span as the one that they come from`() throws {
        let fixture = fixture(controls: 2) { _ in
        } adjust: { settings in
            settings.splitAbove = 1
            settings.shards = ShardTopic(binding: 0, partitions: 2)
        }
        sampledEvent(fixture)
        let shards = fixture.takeRecords()
        #expect(shards.count == 2)
        fixture.acknowledge(shards)
        let event = try #require(spans(fixture).first { $0.name == "event" })
        let expected = TraceContext(trace: event.trace, span: event.id, isSampled: true).text
        for shard in shards { #expect(shard.traceparent == expected) }

        let reader = self.fixture(controls: 2)
        reader.event(
            shards[0].key, shards[0].value, headers: ["traceparent": expected])
        reader.pass(.milliseconds(1))
        _ = reader.deliverAll()
        let read = try #require(spans(reader).first { $0.name == "event" })
        #expect(read.parent == event.id && read.trace == event.trace)
        #expect(read["messaging.kafka.offset"] == event["messaging.kafka.offset"])
    }

    @Test(arguments: ["unmatched", "expired"])
    func `a shard that comes to nothing where it is read says so`(outcome: String) throws {
        let fixture = fixture(controls: 2) { _ in
        } adjust: { settings in
            settings.splitAbove = 1
            settings.shards = ShardTopic(binding: 0, partitions: 2)
        }
        fixture.event(
            "hot", #"{"ttlSeconds":60}"#, headers: ["traceparent": Self.sampled])
        let shards = fixture.takeRecords()
        #expect(shards.count == 2)
        let reader = self.fixture(controls: outcome == "unmatched" ? 0 : 2)
        // The offset of the shard is not that of its event.
        reader.event("nobody-shows-this")
        if outcome == "expired" { reader.pass(.seconds(61)) }
        reader.event(shards[0].key, shards[0].value, headers: ["traceparent": Self.sampled])
        let event = try #require(spans(reader).first { $0.name == "event" })
        #expect(event["lamplighter.outcome"] == .text(outcome))
        #expect(event["messaging.kafka.offset"] == .integer(0))
    }

    // MARK: Which are traced

    @Test func `an event is traced if its traceparent says so, whatever the share is`() {
        for ratio in [0, 0.5, 1] {
            let fixture = fixture(ratio: ratio)
            fixture.event("hot", headers: ["traceparent": Self.unsampled])
            #expect(spans(fixture).isEmpty)
            sampledEvent(fixture)
            _ = fixture.deliverAll()
            #expect(fixture.traceCounts?.eventsTraced == 1)
        }
    }

    @Test func `of events without a traceparent a share is traced, each in a trace of its own`() {
        for (ratio, range) in [(0, 0...0), (0.25, 150...350), (1, 1000...1000)] {
            let fixture = fixture(ratio: ratio) { $0.spansMax = 10_000 }
            fixture.checksEachCall = false
            for _ in 0..<1000 {
                fixture.event("hot", headers: Bool.random() ? [:] : ["traceparent": "broken"])
                _ = fixture.deliverAll()
                fixture.pass(.milliseconds(6))
            }
            let events = fixture.takeSpans().filter { $0.name == "event" }
            #expect(range.contains(events.count), "\(events.count)")
            #expect(events.allSatisfy { $0.parent == nil })
            #expect(Set(events.map(\.trace)).count == events.count)
        }
    }

    @Test func `nothing is traced where that is not asked for`() {
        let fixture = PipelineFixture { $0.events.readsTraceparent = true }
        fixture.registerControl("A", [1], shows: ["hot"])
        sampledEvent(fixture)
        _ = fixture.deliverAll()
        #expect(spans(fixture).isEmpty)
        #expect(fixture.traceCounts == nil)
    }

    @Test func `of the pushes of many events just those of the traced ones are spans`() {
        let fixture = fixture(controls: 1)
        // More events than the state has bits, so that most share theirs with a traced one.
        for number in 0..<200 {
            fixture.event("hot", headers: number % 4 == 0 ? ["traceparent": Self.sampled] : [:])
            #expect(fixture.deliverAll().count == 1)
            if number % 3 == 0 { fixture.pass(.milliseconds(6)) }
        }
        let names = spans(fixture).map(\.name)
        for name in ["event", "plan", "push"] { #expect(names.count { $0 == name } == 50) }
    }

    // MARK: Bounds

    @Test func `the requests of an event beyond the bound are counted in its span`() {
        let fixture = fixture(controls: 20) { $0.requestsMax = 16 }
        sampledEvent(fixture)
        #expect(fixture.deliverAll().count == 20)
        let all = spans(fixture)
        #expect(all.count { $0.name == "push" } == 16)
        #expect(all.last?["lamplighter.requests"] == .integer(20))
        #expect(all.last?["lamplighter.requests.left_out"] == .integer(4))
    }

    @Test func `events beyond the bound are not traced, and are counted`() {
        let fixture = fixture { $0.eventsMax = 3 }
        for _ in 0..<5 { sampledEvent(fixture) }
        #expect(fixture.traceCounts?.eventsTraced == 3)
        #expect(fixture.traceCounts?.eventsLeftOut == 2)
        _ = fixture.deliverAll()
        #expect(spans(fixture).count { $0.name == "event" } == 3)
        sampledEvent(fixture)
        #expect(fixture.traceCounts?.eventsTraced == 4)
    }

    @Test func `spans that nobody takes are dropped beyond the bound, and are counted`() {
        let fixture = fixture { $0.spansMax = 5 }
        for _ in 0..<4 {
            sampledEvent(fixture)
            _ = fixture.deliverAll()
            fixture.pass(.milliseconds(10))
        }
        #expect(fixture.takeSpans().count == 5)
        #expect(fixture.traceCounts?.spansDropped == 7)
    }

    @Test func `an event that never ends ends its span after a minute, unfinished`() throws {
        let fixture = fixture()
        sampledEvent(fixture)
        let push = try #require(fixture.take().first)
        #expect(spans(fixture, after: .seconds(59)).map(\.name) == ["plan"])
        let event = try #require(spans(fixture, after: .seconds(1)).last)
        #expect(event.name == "event" && event["lamplighter.unfinished"] == .flag(true))
        // What comes later is not told any more.
        fixture.answer(push, 200)
        #expect(spans(fixture).isEmpty)
    }
}

extension Span {
    subscript(name: String) -> Value? { attributes.first { $0.name == name }?.value }
}
