// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// When what is made of a deferred push goes back to wait, and until when.
@Suite struct `Deferred pushes that return` {
    private func notBefore(of record: ProducedRecord) throws -> WallTime {
        let start = try #require(record.value.firstRange(of: #""notBefore":""#)).upperBound
        return try #require(
            WallTime(rfc3339: String(record.value[start...].prefix { $0 != "\"" })))
    }

    @Test func `deferred pushes rest again as long as Apple asked, with the tries that they cost`()
        throws
    {
        let owner = DeferredOwner { $0.attemptsMax = 2 }
        let pipeline = owner.pipeline
        owner.write(1)
        pipeline.pass(.milliseconds(10))
        let first = try #require(pipeline.take().first)
        pipeline.answer(first, 503, .serviceUnavailable, retryAfterSeconds: 600)
        let due = pipeline.now.wall + .seconds(600)
        // What joins it now must not be held for so long.
        pipeline.event("s1")
        pipeline.pass(.seconds(9))
        let record = try #require(pipeline.takeRecords().first)
        #expect(try notBefore(of: record) == due)
        pipeline.pass(.seconds(580))
        #expect(pipeline.take().isEmpty)
        pipeline.pass(.seconds(15))
        let second = try #require(pipeline.take().first)
        pipeline.answer(second, 503, .serviceUnavailable)
        pipeline.pass(.seconds(1))
        let letter = try #require(pipeline.takeRecords().first { $0.topic == .deadLetters })
        #expect(letter.value.contains("AttemptsExhausted"))
        #expect(letter.value.contains(#""attempts":2"#))
    }

    @Test func `deferred pushes rest as long as Apple asked, also where their pool opens sooner`()
        throws
    {
        let owner = DeferredOwner()
        let pipeline = owner.pipeline
        owner.write(2)
        pipeline.pass(.milliseconds(10))
        let push = try #require(pipeline.take().first)
        pipeline.answer(push, 503, .serviceUnavailable, retryAfterSeconds: 3000)
        let due = pipeline.now.wall + .seconds(3000)
        pipeline.event("s2")
        owner.openBreaker()
        pipeline.pass(.seconds(9))
        let record = try #require(pipeline.takeRecords().first { $0.key.hasSuffix("/02") })
        #expect(try notBefore(of: record) == due)
    }

    @Test func `deferred pushes leave a pool whose breaker is open without a record of their own`()
    {
        let owner = DeferredOwner(controls: 30)
        for token in 1...30 as ClosedRange<UInt8> { owner.write(token) }
        owner.pipeline.pass(.milliseconds(10))
        #expect(owner.pipeline.load.queued == 24, "three quarters of their share")
        owner.pipeline.answer(owner.pipeline.take(1)[0], 403, .invalidProviderToken)
        owner.pipeline.pass(.milliseconds(100))
        #expect(owner.pipeline.load.queued == HoldWatch.probesKept)
        #expect(owner.pipeline.takeRecords().isEmpty)
    }

    @Test func `deferred pushes are not sent again by what wrote their row again before it ended`()
        throws
    {
        let owner = DeferredOwner()
        let (pipeline, deferred) = (owner.pipeline, owner.deferred)
        pipeline.register("D", [.device([9], shows: ["score"])])
        let start = pipeline.now.wall
        owner.writeGame("2:1", readAt: start)
        // It would hide the newer payload from the next owner.
        owner.writeGame("1:1", readAt: start + (.zero - .seconds(1)))
        pipeline.pass(.milliseconds(10))
        let push = try #require(pipeline.take().first)
        #expect(deferred.produce().deferred.map { $0.contains("2:1") } == [true])
        pipeline.answer(push, 200)

        // The tombstone is behind the record, and may come a turn later.
        deferred.read()
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.take().isEmpty && pipeline.load.deferred == 0)
        let tombstones = deferred.produce().deferred
        #expect(tombstones.count == 1 && tombstones[0].value == nil)
        deferred.read()
        owner.writeGame("3:1", readAt: start + .seconds(1))
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.take().count == 1)
    }

    @Test func `deferred pushes hold no event that could wait for too long`() {
        let owner = DeferredOwner()
        owner.write(1)
        owner.pipeline.pass(.milliseconds(10))
        owner.pipeline.pass(.seconds(20))
        #expect(owner.pipeline.load.queued == 1)
        #expect(owner.pipeline.counters.deferred == 0)
    }

    @Test func `deferred pushes are of the pool that stands still, not of one it makes room for`() {
        let fixture = DeferredOwner(controls: 1).pipeline
        for number in 2...201 {
            fixture.registerControl(
                "D\(number)", [UInt8(number)], shows: ["d\(number)"], environment: .development)
        }
        fixture.registerControl("E", [250], shows: ["both"])
        fixture.registerControl("F", [251], shows: ["both"])
        fixture.event("both")
        for number in 2...201 { fixture.event("d\(number)") }
        fixture.answer(fixture.take(1, pool: 0)[0], 200)
        fixture.pass(.milliseconds(2600))
        #expect(fixture.load.queued == 128 + 1)
        #expect(fixture.deliverAll(pool: 0).count == 1)
    }
}
