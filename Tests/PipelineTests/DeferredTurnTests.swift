// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Delivery
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// When the owner of a partition of `deferred` sends its pushes, and ends them.
@Suite struct `Deferred pushes and their turns` {
    // MARK: Turns

    @Test func `deferred pushes of each route have their turn, however many another has`() {
        let owner = DeferredOwner(controls: 60) { $0.slots = 8 }
        let pipeline = owner.pipeline
        pipeline.registerControl("E", [250], shows: ["dev"], environment: .development)
        for token in 1...60 as ClosedRange<UInt8> { owner.write(token) }
        owner.write(250, environment: "development")
        let routes = pipeline.pipeline.routing.routes.count
        var sent: [SentPush] = []
        for _ in 0..<routes {
            pipeline.pass(.milliseconds(10))
            sent += pipeline.deliverAll(pool: 0) + pipeline.deliverAll(pool: 1)
        }
        #expect(sent.count == routes, "their share is one slot")
        #expect(sent.contains { $0.token == [250] })
    }

    @Test func `deferred pushes wait while as many of their ends wait for Kafka as may`() {
        let owner = DeferredOwner(controls: 5) { settings in
            settings.slots = 8
            settings.unacknowledgedMax = 2
        }
        for token in 1...5 as ClosedRange<UInt8> { owner.write(token) }
        var sent = 0
        for _ in 0..<5 {
            owner.pipeline.pass(.milliseconds(10))
            sent += owner.pipeline.deliverAll().count
        }
        #expect(sent == 2)
        owner.deferred.produce()
        owner.pipeline.pass(.milliseconds(10))
        #expect(owner.pipeline.deliverAll().count == 1)
    }

    @Test func `deferred pushes keep a place for their tombstones while they are under way`() {
        let owner = DeferredOwner(controls: 3) { $0.unacknowledgedMax = 2 }
        for token in 1...2 as ClosedRange<UInt8> { owner.write(token) }
        owner.pipeline.pass(.milliseconds(10))
        let underWay = owner.pipeline.take()
        #expect(underWay.count == 2)
        owner.pipeline.event("s3")
        owner.pipeline.answer(
            owner.pipeline.take()[0], 429, .tooManyRequests, retryAfterSeconds: 60)
        #expect(owner.pipeline.takeRecords().isEmpty, "there is no place for a third")
        for push in underWay { owner.pipeline.answer(push, 200) }
        owner.pipeline.pass(.milliseconds(10))
        let tombstones = owner.pipeline.takeRecords()
        #expect(tombstones.count == 2 && tombstones.allSatisfy { $0.value.isEmpty })
        owner.pipeline.acknowledge(tombstones)
        owner.pipeline.pass(.seconds(9))
        #expect(owner.pipeline.takeRecords().count == 1)
    }

    @Test func `deferred pushes wait while events' payloads take three quarters of their memory`() {
        let owner = DeferredOwner { $0.payloadBytesMax = 100 }
        let pipeline = owner.pipeline
        pipeline.register("D", [.device([9], shows: ["score"])])
        let text = String(repeating: "a", count: 60)
        pipeline.event(
            "score", EventValue.alert(text, collapseID: "game"))
        owner.write(1)
        pipeline.pass(.milliseconds(10))
        #expect((75..<100).contains(pipeline.load.payloadBytes))
        #expect(pipeline.deliverAll().map(\.token) == [[9]])
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.deliverAll().map(\.token) == [[1]])
    }

    @Test func `deferred pushes older than a payload read at the same instant do not replace it`() {
        let owner = DeferredOwner()
        let pipeline = owner.pipeline
        pipeline.register("D", [.device([9], shows: ["score"])])
        pipeline.event(
            "score", EventValue.alert("new", collapseID: "game"))
        owner.writeGame("old", readAt: pipeline.now.wall)
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.deliverAll().map(\.body) == [#"{"aps":{"alert":"new"}}"#])
    }

    @Test func `deferred pushes leave no payload behind that a newer one has replaced`() {
        let owner = DeferredOwner()
        let pipeline = owner.pipeline
        pipeline.register("D", [.device([9], shows: ["score"])])
        for (text, age) in [("old", 2), ("newer", 1), ("newest", 0)] {
            let readAt = pipeline.now.wall + .seconds(-age)
            owner.writeGame(text, readAt: readAt)
        }
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.deliverAll().map(\.body) == [#"{"aps":{"alert":"newest"}}"#])
        pipeline.pass(.milliseconds(10))
        let bytes = pipeline.pipeline.deferral.table.bodies.bytes
        #expect(bytes == 0)
    }

    @Test func `deferred pushes wait for the registration of a token known by a suppression only`()
    {
        let owner = DeferredOwner()
        let pipeline = owner.pipeline
        pipeline.event("s1")
        pipeline.answer(pipeline.take()[0], 410, .unregistered)
        pipeline.unregister("I1")
        owner.write(1)
        pipeline.pass(.seconds(1))
        #expect(pipeline.counters.suppressed == 0)
        pipeline.registerControl("I1", [1], shows: ["s1"])
        pipeline.pass(.seconds(31))
        #expect(pipeline.deliverAll().map(\.token) == [[1]])
    }

    // MARK: Ends

    @Test func `all end when they expire behind an open breaker`() {
        let owner = DeferredOwner()
        owner.openBreaker()
        for token in 2...4 as ClosedRange<UInt8> {
            owner.write(token, ttl: .seconds(30))
        }
        owner.pipeline.pass(.seconds(20))
        #expect(owner.pipeline.counters.expired == 0)
        owner.pipeline.pass(.seconds(20))
        #expect(owner.pipeline.counters.expired == 3)
    }

    @Test func `expired deferred pushes wait while as many of their ends wait for Kafka as may`() {
        let owner = DeferredOwner { $0.unacknowledgedMax = 1 }
        owner.openBreaker()
        owner.write(2, ttl: .seconds(30))
        owner.write(3, ttl: .seconds(40))
        owner.pipeline.pass(.seconds(20))
        owner.deferred.produce()
        owner.pipeline.pass(.seconds(11))
        #expect(owner.pipeline.counters.expired == 1)
        owner.pipeline.pass(.seconds(10))
        #expect(owner.pipeline.counters.expired == 1)
        owner.deferred.produce()
        owner.pipeline.pass(.seconds(1))
        #expect(owner.pipeline.counters.expired == 2)
    }

    @Test func `deferred pushes back after an operator's tombstone end up to the last record read`()
    {
        let owner = DeferredOwner()
        let pipeline = owner.pipeline
        owner.write(1, ttl: .seconds(3600))
        // Says less, and is put right; before that is in Kafka, another worker says all.
        owner.write(1, ttl: .seconds(90))
        owner.write(1, ttl: .seconds(3600))
        pipeline.pass(.milliseconds(10))
        let push = pipeline.take()
        owner.deferred.write(DeferredFixture.Record(key: owner.deferred.log[0].key, value: nil))
        owner.deferred.read()
        owner.deferred.produce()
        owner.deferred.read()
        pipeline.answer(push[0], 200)
        for _ in 0..<2 {
            pipeline.pass(.milliseconds(10))
            _ = pipeline.deliverAll()
        }
        pipeline.pass(.milliseconds(10))
        #expect(owner.deferred.produce().deferred.map(\.endedOffset) == [2])
    }
}
