// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline

@Suite struct `A canary` {
    private static let period = Duration.seconds(60)

    private let fixture = PipelineFixture {
        $0.canary = CanarySettings(
            every: Self.period, app: PipelineFixture.app, subject: "canary", worker: 0xAB)
    }

    private var canary: Canary { fixture.pipeline.canary }
    private var silence: Duration? { canary.silence(now: fixture.now) }

    private func next(_ partitions: [Int32]? = [0]) -> Canary.Record? {
        fixture.pipeline.nextCanary(partitions: partitions, now: fixture.now)
    }

    /// Writes one, which Kafka acknowledges.
    private func write() throws -> Canary.Record {
        let record = try #require(next())
        fixture.pipeline.canaryAcknowledged(record.number, refusal: nil)
        return record
    }

    private func read(_ record: Canary.Record, writtenAt: WallTime? = nil) {
        fixture.event(nil, String(decoding: record.value, as: UTF8.self), writtenAt: writtenAt)
    }

    private func register() { fixture.registerControl("A", [1], shows: ["canary"]) }

    @Test func `comes through when APNs has answered its push`() throws {
        register()
        let record = try #require(next())
        #expect(
            String(decoding: record.value, as: UTF8.self)
                == #"{"v":1,"id":"lamplighter-canary:ab:1","subject":"canary","app":"com.example.Home","ttlSeconds":300}"#
        )
        #expect(canary.latest?.stage == .unacknowledged)
        fixture.pipeline.canaryAcknowledged(1, refusal: nil)
        #expect(canary.latest?.stage == .unread)
        read(record)
        #expect(canary.latest?.stage == .sent(last: nil))
        let push = fixture.take()[0]
        fixture.pass(.seconds(2))
        #expect(canary.lastProof == nil && silence == .seconds(2))
        fixture.answer(push, 200)
        #expect(canary.latest?.stage == .cameThrough(status: 200, after: .seconds(2)))
        #expect(canary.lastProof?.number == 1)
        #expect(canary.counts == .init(written: 1, cameThrough: 1))
        fixture.pass(.seconds(40))
        #expect(silence == .seconds(42))
    }

    @Test func `to a dead token comes through each time, and never suppresses it`() throws {
        register()
        for number in 1...4 {
            read(try write())
            let push = try #require(fixture.take().first)
            fixture.answer(push, 410, .unregistered)
            #expect(canary.latest?.stage == .cameThrough(status: 410, after: .zero))
            #expect(canary.counts.cameThrough == number)
            #expect(fixture.takeRecords().isEmpty)
            fixture.pass(Self.period)
        }
        #expect(fixture.counters.unregistered == 0 && fixture.counters.deadUnconfirmed == 4)
        #expect(fixture.isIdle)
    }

    @Test func `of another worker is sent and proves nothing here`() throws {
        register()
        _ = try write()
        fixture.event(
            nil,
            #"{"v":1,"id":"lamplighter-canary:cd:1","subject":"canary","app":"com.example.Home"}"#)
        fixture.answer(try #require(fixture.take().first), 410, .unregistered)
        #expect(canary.latest?.stage == .unread && canary.lastProof == nil)
        #expect(fixture.takeRecords().isEmpty && fixture.counters.unregistered == 0)
    }

    @Test(arguments: [
        nil, "lamplighter-canary:ab:", "lamplighter-canary:ab:x", "lamplighter-canary:ab:2",
        "lamplighter-canary:ab:-1", "lamplighter-canary:ab:99999999999999999999",
        "lamplighter-canary:ab:999999999999999999999", "lamplighter-canary:abc:1",
    ])
    func `is not taken for another event about its subject`(id: String?) throws {
        register()
        _ = try write()
        fixture.event("canary", id.map { #"{"id":"\#($0)","app":"com.example.Home"}"# })
        #expect(fixture.deliverAll().count == 1)
        #expect(canary.latest?.stage == .unread && canary.lastProof == nil)
    }

    @Test func `is not taken for an event with its ID about another subject`() throws {
        fixture.registerControl("B", [2], shows: ["door"])
        _ = try write()
        fixture.event("door", #"{"id":"lamplighter-canary:ab:1","app":"com.example.Home"}"#)
        #expect(fixture.deliverAll().count == 1)
        #expect(canary.latest?.stage == .unread && canary.lastProof == nil)
    }

    @Test func `is not taken for a copy in another partition than it was written to`() throws {
        register()
        let record = try #require(next([5]))
        fixture.pipeline.canaryAcknowledged(record.number, refusal: nil)
        read(record)
        #expect(fixture.deliverAll().count == 1)
        #expect(canary.latest?.stage == .unread && canary.lastProof == nil)
    }

    @Test func `that was written twice comes through by the first`() throws {
        register()
        let record = try write()
        read(record)
        read(record)
        fixture.answer(try #require(fixture.take().first), 200)
        #expect(canary.lastProof?.number == record.number)
    }

    @Test func `that joins a push in its minimum gap is not called suppressed`() throws {
        let fixture = PipelineFixture {
            $0.canary = CanarySettings(
                every: Self.period, app: PipelineFixture.app, subject: "canary", worker: 0xAB)
            $0.minimumGaps[.controls] = .seconds(1800)
        }
        fixture.registerControl("A", [1], shows: ["canary"])
        for _ in 1...2 {
            let next = fixture.pipeline.nextCanary(partitions: [0], now: fixture.now)
            let record = try #require(next)
            fixture.pipeline.canaryAcknowledged(record.number, refusal: nil)
            fixture.event(nil, String(decoding: record.value, as: UTF8.self))
            _ = fixture.deliverAll()
            fixture.pass(Self.period)
        }
        let stage = fixture.pipeline.canary.latest?.stage
        #expect(stage == .sent(last: nil))
    }

    @Test func `that comes late proves its own time and no later one's`() throws {
        register()
        read(try write())
        let late = try #require(fixture.take().first)
        fixture.pass(Self.period)
        let second = try write()
        fixture.pass(.seconds(30))
        fixture.answer(late, 200)
        #expect(canary.lastProof?.number == 1)
        #expect(silence == .seconds(90))
        #expect(canary.latest?.stage == .unread)
        read(second)
        fixture.answer(try #require(fixture.take().first), 200)
        #expect(canary.lastProof?.number == 2 && silence == .seconds(30))
    }

    @Test func `that comes through after a later one changes nothing`() throws {
        register()
        fixture.registerControl("B", [2], shows: ["canary"])
        read(try write())
        let first = fixture.take()
        #expect(first.count == 2)
        fixture.answer(first[0], 500, .internalServerError)
        #expect(canary.latest?.stage == .sent(last: "500 InternalServerError"))
        fixture.answer(first[1], 200)
        #expect(canary.counts.cameThrough == 1)
        fixture.pass(Self.period)
        read(try write())
        for push in fixture.take() { fixture.answer(push, 200) }
        #expect(canary.lastProof?.number == 2 && canary.counts.cameThrough == 2)
        fixture.pass(Self.period)
        #expect(silence == Self.period)
    }

    @Test func `says where it is`() throws {
        read(try write())
        #expect(canary.latest?.stage == .ended(.unmatched))
        fixture.pass(Self.period)
        register()
        let (expired, writtenAt) = (try write(), fixture.now.wall)
        fixture.pass(.seconds(301))
        read(expired, writtenAt: writtenAt)
        #expect(canary.latest?.stage == .ended(.expired))
        read(try write())
        #expect(canary.latest?.stage == .sent(last: nil))
        fixture.answer(try #require(fixture.take().first), 403, .expiredProviderToken)
        #expect(canary.latest?.stage == .sent(last: "403 ExpiredProviderToken"))
        #expect(canary.lastProof == nil && silence == .seconds(361))
    }

    @Test func `whose push ends unsent says why`() throws {
        register()
        read(try write())
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .drop)
        #expect(fixture.take().isEmpty)
        #expect(canary.latest?.stage == .unsent(.dropped))
        #expect(canary.counts.cameThrough == 0)
    }

    @Test func `whose token registers just after it comes through, too`() throws {
        let record = try write()
        read(record)
        register()
        fixture.pass(.seconds(1))
        // Nothing else makes the answer to its push worth a look.
        fixture.pass(Self.period)
        read(try write())
        fixture.answer(try #require(fixture.take().first), 200)
        #expect(canary.lastProof?.number == record.number)
    }

    @Test func `of a suppressed token says so`() throws {
        register()
        fixture.event("canary")
        // Before there were canaries: the answer to another event.
        let dead = PipelineFixture()
        dead.registerControl("A", [1], shows: ["canary"])
        dead.event("canary")
        dead.answer(dead.take()[0], 410, .unregistered)
        let suppression = dead.takeRecords()[0]
        Array(suppression.key.utf8).withUnsafeBytes { key in
            Array(suppression.value.utf8).withUnsafeBytes { value in
                _ = fixture.pipeline.suppressionRecord(
                    key: key, value: value, timestamp: fixture.now.wall)
            }
        }
        _ = fixture.deliverAll()
        read(try write())
        #expect(canary.latest?.stage == .withoutPush)
    }

    @Test func `is written once a period, and not before Kafka has said what became of the last`()
        throws
    {
        let first = try #require(next())
        fixture.pass(.seconds(59))
        fixture.pipeline.canaryAcknowledged(first.number, refusal: nil)
        #expect(next() == nil)
        fixture.pass(.seconds(1))
        let second = try #require(next())
        #expect(second.number == 2)
        fixture.pass(.seconds(150))
        #expect(next() == nil)
        fixture.pipeline.canaryAcknowledged(second.number, refusal: "_MSG_TIMED_OUT")
        #expect(canary.latest?.stage == .refused(cause: "_MSG_TIMED_OUT"))
        // Those that were left out are not made up for.
        #expect(next()?.number == 3)
        fixture.pipeline.canaryAcknowledged(3, refusal: nil)
        #expect(next() == nil)
        #expect(silence == .seconds(210) && canary.counts.written == 3)
    }

    @Test func `is read before it is acknowledged, and again after a rebalance`() throws {
        register()
        let record = try #require(next())
        read(record)
        fixture.pipeline.canaryAcknowledged(record.number, refusal: nil)
        #expect(canary.latest?.stage == .sent(last: nil))
        fixture.answer(try #require(fixture.take().first), 200)
        read(record)
        fixture.answer(try #require(fixture.take().first), 500, .internalServerError)
        #expect(canary.latest?.stage == .cameThrough(status: 200, after: .zero))
    }

    @Test func `takes the worker's partitions in turn, and is not missed where there are none`()
        throws
    {
        var partitions: [Int32] = []
        for _ in 1...6 {
            let record = try #require(next([2, 5, 7]))
            partitions.append(record.partition)
            fixture.pipeline.canaryAcknowledged(record.number, refusal: nil)
            fixture.pass(Self.period)
        }
        #expect(partitions.sorted() == [2, 2, 5, 5, 7, 7])
        _ = next([2, 5, 7])
        #expect(silence == .seconds(360))
        // While the group has not said, none is written, and those are missed all the same.
        #expect(next(nil) == nil)
        fixture.pass(.seconds(1000))
        #expect(next(nil) == nil && silence == .seconds(1360))
        #expect(next([]) == nil && silence == nil)
        fixture.pass(.seconds(1000))
        _ = next(nil)
        fixture.pass(.seconds(7))
        #expect(silence == .seconds(7))
    }

    @Test func `is forgotten when its push is dead, and memory stays bounded`() throws {
        register()
        let oldest = try write()
        for _ in 1...40 {
            fixture.pass(Self.period)
            _ = try write()
        }
        read(oldest)
        #expect(canary.latest?.number == 41 && canary.latest?.stage == .unread)
        #expect(canary.turnCount == 32)
    }

    @Test func `is not written where none is configured`() {
        let fixture = PipelineFixture()
        #expect(fixture.pipeline.nextCanary(partitions: [0], now: fixture.now) == nil)
        #expect(fixture.pipeline.canary.silence(now: fixture.now) == nil)
        #expect(fixture.pipeline.canaryLooksAt == .distantFuture)
    }
}
