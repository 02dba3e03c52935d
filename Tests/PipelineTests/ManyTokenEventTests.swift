// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `An event of many tokens` {
    private static let tokens = (1...40).map { [UInt8($0), 7, 9] }
    private static let topic = ShardTopic(binding: 0, partitions: 8)

    /// A worker that knows all tokens. Hash tables differ from worker to worker, shards do not.
    private func worker(
        seed: UInt64 = 7, bindings: [TopicBinding] = [.standard],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(bindings: bindings) { settings in
            settings.seed = seed
            settings.splitAbove = 39
            settings.shards = Self.topic
            settings.events.allowKindWide = true
            adjust(&settings)
        }
        for (number, token) in Self.tokens.enumerated() {
            fixture.register("I\(number)", [.control(token, shows: ["door"])])
        }
        return fixture
    }

    /// What other workers send that read these records, every second one each.
    private func sent(
        of shards: [ProducedRecord], bindings: [TopicBinding] = [.standard],
        register: (PipelineFixture) -> Void = { _ in }
    ) -> [SentPush] {
        (0..<2).flatMap { half in
            let reader = worker(seed: UInt64(half), bindings: bindings)
            register(reader)
            for (number, shard) in shards.enumerated() where number % 2 == half {
                reader.event(shard.key, shard.value)
            }
            #expect(reader.takeRecords().isEmpty, "a shard is split again, or unreadable")
            reader.pass(.milliseconds(1))
            return reader.deliverAll()
        }
    }

    private func isAll(_ pushes: [SentPush]) -> Bool {
        pushes.map(\.token).inOrder == Self.tokens
    }

    @Test func `an event of many tokens is written for each partition, ended by its last shard`() {
        let fixture = worker()
        fixture.event("door")
        fixture.pass(.seconds(3))
        #expect(fixture.take().isEmpty)
        let shards = fixture.takeRecords()
        #expect(shards.map(\.topic) == Array(repeating: .events, count: 8))
        #expect(shards.map(\.partition) == (0..<8).map { $0 })
        #expect(shards.allSatisfy { $0.key == "door" })
        fixture.acknowledge(shards.dropLast())
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge(shards.suffix(1))
        #expect(fixture.committableOffset == 1)
        #expect(fixture.isIdle && fixture.counters.eventsSplit == 1)
    }

    @Test func `an event of many tokens has at most 16 shards, spread over all partitions`() {
        let fixture = worker { $0.shards = ShardTopic(binding: 0, partitions: 48) }
        fixture.event("door")
        #expect(fixture.takeRecords().map(\.partition) == (0..<16).map { $0 * 3 })
    }

    @Test func `an event of many tokens reaches each token once, under the name it had unsplit`() {
        let fixture = worker()
        fixture.event("door")
        let pushes = sent(of: fixture.takeRecords())
        #expect(isAll(pushes))
        let alone = worker { $0.shards = nil }
        alone.event("door")
        alone.pass(.milliseconds(1))
        let unsplit = alone.deliverAll()
        #expect(isAll(unsplit))
        #expect(Set(pushes.map(\.apnsID)) == Set(unsplit.map(\.apnsID)))
    }

    @Test func `an event of many tokens keeps what it says of its pushes`() throws {
        let bindings = [
            TopicBinding(decode: .json, kinds: ["lamp"], classes: TokenClassSet(.control)),
            TopicBinding(decode: .json, delay: .milliseconds(700)),
        ]
        let fixture = worker(bindings: bindings)
        let devices = { (fixture: PipelineFixture) in
            fixture.register("D", [.device([50, 1], shows: ["door"])])
            fixture.register("E", [.device([51, 1], shows: ["door"])], environment: .development)
        }
        devices(fixture)
        fixture.event(
            "door",
            #"{"payload":{"aps":{"alert":"Hi"}},"environment":"production","priority":5,"#
                + #""apnsExpiration":"none"}"#, binding: 1)
        let shards = fixture.takeRecords()
        #expect(shards.count == 8)
        var pushes = sent(of: shards, bindings: bindings, register: devices)
        #expect(pushes.isEmpty, "the delay is not over")
        let reader = worker(bindings: bindings)
        devices(reader)
        for shard in shards { reader.event(shard.key, shard.value) }
        reader.pass(.milliseconds(700))
        pushes = reader.deliverAll()
        let push = try #require(pushes.first)
        #expect(pushes.count == 1 && push.token == [50, 1] && push.type == .alert)
        #expect(push.priority == 5 && push.expiration < 0)
        #expect(push.body == #"{"aps":{"alert":"Hi"}}"#)

        _ = fixture.pipeline.takeRecords()
        let alone = worker(bindings: bindings) { $0.shards = nil }
        devices(alone)
        alone.event("door", #"{"payload":{"aps":{"alert":"Hi"}}}"#, binding: 1)
        alone.pass(.milliseconds(700))
        #expect(alone.deliverAll().map(\.collapseID).contains(push.collapseID))
    }

    @Test func `an event of many tokens for a whole kind is split list by list`() {
        let fixture = worker()
        fixture.event(nil, #"{"kinds":["door","nobody's"]}"#)
        let shards = fixture.takeRecords()
        #expect(shards.count == 8 && shards.allSatisfy { $0.key.isEmpty })
        #expect(isAll(sent(of: shards)))
    }

    @Test(arguments: [false, true])
    func `an event of many tokens is fanned out here where Kafka does not take a shard`(
        isTooLarge: Bool
    ) {
        let fixture = worker()
        fixture.event("door", #"{"collapseID":"c"}"#)
        let shards = fixture.takeRecords()
        for shard in shards.prefix(3) {
            if isTooLarge {
                fixture.pipeline.tooLarge(shard.ticket)
            } else {
                fixture.pipeline.refused(shard.ticket)
            }
        }
        fixture.acknowledge(shards.suffix(5))
        fixture.pass(.seconds(3))
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.committableOffset == 0)
        #expect(isAll(fixture.deliverAll() + sent(of: shards.suffix(5))))
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 1 && fixture.isIdle)
        #expect(fixture.counters.shardsRefused == 3)
    }

    @Test func `an event of many tokens is fanned out here while the shards' topic takes nothing`()
    {
        let fixture = worker()
        fixture.pipeline.shardBreaker = .open
        fixture.event("door")
        fixture.pass(.milliseconds(1))
        #expect(isAll(fixture.deliverAll()))
        #expect(fixture.takeRecords().isEmpty && fixture.counters.eventsSplit == 0)
        // Of two events one tries whether the topic takes shards again.
        fixture.pipeline.shardBreaker = .halfOpen
        for _ in 0..<2 { fixture.event("door") }
        fixture.pass(.milliseconds(1))
        #expect(isAll(fixture.deliverAll()))
        #expect(fixture.takeRecords().count == 8 && fixture.counters.eventsSplit == 1)

        fixture.pipeline.shardBreaker = .closed
        for _ in 0..<2 { fixture.event("door") }
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().isEmpty && fixture.takeRecords().count == 16)
    }

    @Test func `events of many tokens are fanned out here once shards are refused, oldest first`() {
        let fixture = worker { $0.fanOutsMax = 1 }
        fixture.event("door", #"{"priority":5}"#)
        fixture.event("door", #"{"priority":10}"#)
        let shards = fixture.takeRecords()
        #expect(shards.count == 16)
        #expect(fixture.pipeline.nextDue(now: fixture.now) > fixture.now.monotonic)
        for shard in shards { fixture.pipeline.refused(shard.ticket) }
        var priorities: [UInt8] = []
        for _ in shards {
            #expect(fixture.pipeline.nextDue(now: fixture.now) <= fixture.now.monotonic)
            fixture.pass(.milliseconds(1))
            priorities += fixture.deliverAll().map(\.priority)
        }
        #expect(priorities == [5, 10].flatMap { Array(repeating: $0, count: 40) })
    }

    @Test func `an event of many tokens that an operator drops is not fanned out from its shards`()
    {
        let fixture = worker()
        fixture.event("door")
        let shards = fixture.takeRecords()
        fixture.restrict(.subject(Array("door".utf8), app: PipelineFixture.app), .drop)
        for shard in shards { fixture.pipeline.refused(shard.ticket) }
        fixture.pass(.seconds(3))
        #expect(fixture.deliverAll().isEmpty && fixture.isIdle)
        #expect(fixture.committableOffset == 1)
        #expect(fixture.counters.eventsDropped == shards.count)
    }

    @Test(arguments: ["not read", "fanned out", "in Kafka's hands"])
    func `a drop of the topic of an event of many tokens stops its shards, too`(place: String) {
        let bindings = [TopicBinding.standard, .standard]
        let fixture = worker(bindings: bindings)
        fixture.assign(topic: 1, startOffset: 0, nextOffset: 0)
        fixture.event("door", binding: 1)
        let shards = fixture.takeRecords()
        #expect(shards.count == 8)
        let reader = worker(bindings: bindings) { $0.immediateFanOutMax = 1 }
        if place == "fanned out" { for shard in shards { reader.event(shard.key, shard.value) } }
        for each in [fixture, reader] { each.restrict(.topic("events-1"), .drop) }
        if place == "not read" { for shard in shards { reader.event(shard.key, shard.value) } }
        for shard in shards { fixture.pipeline.refused(shard.ticket) }
        for each in [fixture, reader] {
            each.pass(.seconds(3))
            #expect(each.deliverAll().isEmpty && each.isIdle, "\(place)")
        }
        if place == "not read" { #expect(reader.counters.eventsDropped == shards.count) }
        // What comes from other topics goes on.
        reader.event("door")
        reader.pass(.milliseconds(1))
        #expect(reader.takeRecords().count == 8)
    }

    @Test func `an event of many tokens of which a shard was refused too late is sent to nobody`() {
        let fixture = worker()
        fixture.event("door", #"{"ttlSeconds":1}"#)
        let shards = fixture.takeRecords()
        fixture.pass(.seconds(2))
        for shard in shards { fixture.pipeline.refused(shard.ticket) }
        fixture.pass(.seconds(3))
        #expect(fixture.take().isEmpty)
        #expect(fixture.committableOffset == 1 && fixture.isIdle)
        #expect(fixture.counters.eventsExpired == shards.count)
    }

    @Test(arguments: ["at the bound", "no topic", "one partition", "no room", "unreadable"])
    func `an event of many tokens is fanned out by its reader where it cannot be split`(why: String)
    {
        let fixture = worker { settings in
            switch why {
            case "at the bound": settings.splitAbove = 40
            case "no topic": settings.shards = nil
            case "one partition": settings.shards = ShardTopic(binding: 0, partitions: 1)
            case "no room": settings.unacknowledgedMax = 7
            default: settings.events.recordBytesMax = 128
            }
        }
        fixture.event("door", #"{"subject":"door"}"#)
        fixture.pass(.milliseconds(1))
        #expect(isAll(fixture.deliverAll()))
        #expect(fixture.takeRecords().isEmpty && fixture.counters.eventsSplit == 0)
    }

    @Test func `an event of many tokens is owed to a later token by whoever read any of it`() {
        let fixture = worker()
        fixture.event("door")
        let shards = fixture.takeRecords()
        fixture.registerControl("late", [99, 1], shows: ["door"])
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().map(\.token) == [[99, 1]])
        let reader = worker(seed: 3)
        reader.event(shards[0].key, shards[0].value)
        reader.registerControl("late", [99, 1], shows: ["door"])
        reader.pass(.milliseconds(1))
        #expect(reader.deliverAll().map(\.token).contains([99, 1]))
    }
}
