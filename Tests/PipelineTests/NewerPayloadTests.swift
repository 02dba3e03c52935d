// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Of payloads with one collapse ID the newest is the last one that a token is sent, also where an
/// older one waits in `deferred`.
@Suite struct `A newer payload` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        pipeline = Self.worker()
        deferred = DeferredFixture(pipeline)
    }

    private static func worker(
        _ change: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let worker = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.immediateFanOutMax = 1
            change(&settings)
        }
        worker.register("D", [.device([9], shows: ["score", "goals", "hot"])])
        worker.register("E", [.device([8], shows: ["hot"])])
        return worker
    }

    private func game(_ text: String) -> String {
        EventValue.alert(text, collapseID: "game")
    }
    private func body(_ text: String) -> String { #"{"aps":{"alert":"\#(text)"}}"# }

    /// APNs has the token wait for so long that the push is deferred.
    private func refuse(_ worker: PipelineFixture, _ text: String, seconds: UInt16 = 60) {
        worker.event("score", game(text))
        worker.answer(
            worker.take()[0], 429, .tooManyRequests, retryAfterSeconds: seconds)
    }

    /// Everything that the worker still sends, reading what it has written to `deferred`.
    private func sendAll() -> [String] {
        var sent: [SentPush] = []
        for _ in 0..<30 {
            sent += pipeline.deliverAll()
            deferred.produce()
            deferred.read()
            pipeline.pass(.seconds(10))
        }
        #expect(pipeline.load.deferred == 0)
        return sent.map(\.body)
    }

    // MARK: The owner

    @Test func `a newer payload that is accepted ends an older one that waits in deferred`() {
        deferred.assign()
        refuse(pipeline, "old")
        deferred.produce()
        deferred.read()
        #expect(pipeline.load.deferred == 1)
        pipeline.event("score", game("new"))
        #expect(sendAll() == [body("new")])
        #expect(pipeline.counters.deferredSuperseded == 1)
        #expect(deferred.log.last?.value == nil && deferred.log.last?.endedOffset == 0)
    }

    @Test func `an accepted newer payload ends an older one whose record has not been read back`() {
        deferred.assign()
        refuse(pipeline, "old")
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
        deferred.produce()
        deferred.read()
        #expect(sendAll().isEmpty)
    }

    @Test func `a newer payload accepted during a replay ends an older one that is read after it`()
    {
        let other = Self.worker()
        refuse(other, "old")
        other.pass(.seconds(1))
        deferred.log += other.takeRecords().filter { $0.topic == .deferred }.map {
            DeferredFixture.Record(key: $0.key, value: $0.value)
        }
        pipeline.pass(.seconds(2))
        deferred.beginAssignment()
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
        deferred.finishReplay()
        #expect(sendAll().isEmpty)
    }

    @Test func `a newer payload ends an older one that was read by a clock that is ahead`() {
        let other = Self.worker()
        other.pass(.seconds(120))
        refuse(other, "old")
        other.pass(.seconds(1))
        deferred.log += other.takeRecords().filter { $0.topic == .deferred }.map {
            DeferredFixture.Record(key: $0.key, value: $0.value)
        }
        deferred.assign()
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
        #expect(sendAll().isEmpty)
    }

    @Test func `a newer payload that fails leaves an older one in its row`() {
        deferred.assign()
        refuse(pipeline, "old")
        deferred.produce()
        deferred.read()
        pipeline.event("score", game("new"))
        pipeline.answer(pipeline.take()[0], 400, .badMessageId)
        #expect(sendAll() == [body("old")])
    }

    @Test func `a newer payload of another collapse ID ends nothing`() {
        deferred.assign()
        refuse(pipeline, "old")
        deferred.produce()
        deferred.read()
        pipeline.event("score", EventValue.alert("new", collapseID: "other"))
        #expect(sendAll() == [body("new"), body("old")])
    }

    @Test func `a newer payload that waits in deferred itself is not ended by an older one`() {
        deferred.assign()
        pipeline.event("hot", game("old"))
        refuse(pipeline, "new")
        deferred.produce()
        // Its fan-out comes to the token only now.
        _ = pipeline.pipeline.advanceFanOuts(steps: 10, now: pipeline.now)
        deferred.read()
        #expect(sendAll().filter { $0 == body("new") }.count == 1)
        #expect(pipeline.deliverAll().isEmpty)
    }

    // MARK: The worker that has deferred the older one

    @Test func `a newer payload ends an older one deferred here to another worker's partition`()
        throws
    {
        refuse(pipeline, "old")
        pipeline.acknowledge(pipeline.takeRecords())
        pipeline.pass(.seconds(1))
        pipeline.event("score", game("new"))
        let readAt = pipeline.now.wall
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
        let end = try #require(pipeline.takeRecords().first)
        #expect(end.topic == .deferred && end.value.isEmpty && end.endedOffset == nil)
        #expect(end.endedPayloadAt == readAt)
        // Once is enough.
        pipeline.event("score", game("newest"))
        #expect(pipeline.deliverAll().count == 1 && pipeline.takeRecords().isEmpty)
    }

    @Test func `a newer payload ends an older one later when deferred takes no record now`() throws
    {
        let worker = Self.worker { $0.unacknowledgedMax = 1 }
        worker.register("F", [.device([7], shows: ["other"])])
        refuse(worker, "old")
        worker.acknowledge(worker.takeRecords())
        worker.event("other", game("held"))
        worker.answer(worker.take()[0], 429, .tooManyRequests, retryAfterSeconds: 60)
        let unacknowledged = worker.takeRecords()
        #expect(unacknowledged.count == 1)
        worker.event("score", game("new"))
        let readAt = worker.now.wall
        #expect(worker.deliverAll().map(\.body) == [body("new")])
        #expect(worker.takeRecords().isEmpty)
        let isIdle = worker.pipeline.isIdle
        #expect(!isIdle)
        worker.acknowledge(unacknowledged)
        worker.pass(.milliseconds(1))
        let end = try #require(worker.takeRecords().first)
        #expect(end.value.isEmpty && end.endedPayloadAt == readAt)
    }

    @Test func `an accepted newer payload ends an older row later when deferred takes no record`() {
        let worker = Self.worker { $0.unacknowledgedMax = 1 }
        worker.register("F", [.device([7], shows: ["other"])])
        let deferred = DeferredFixture(worker)
        deferred.assign()
        refuse(worker, "old", seconds: 20)
        deferred.produce()
        deferred.read()
        worker.event("other", game("held"))
        worker.answer(worker.take()[0], 429, .tooManyRequests, retryAfterSeconds: 600)
        worker.event("score", game("new"))
        #expect(worker.deliverAll().map(\.body) == [body("new")])
        let unacknowledged = worker.pipeline.state.outbox.tickets.deferrals
        #expect(worker.load.deferred == 1 && unacknowledged == 1)
        deferred.produce()
        worker.pass(.seconds(30))
        #expect(worker.deliverAll().isEmpty)
        #expect(worker.counters.deferredSuperseded == 1 && worker.load.deferred == 0)
    }

    @Test func `a newer payload keeps a refused record of an older one from coming behind its end`()
    {
        refuse(pipeline, "old")
        let deferral = pipeline.takeRecords()
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.acknowledge(pipeline.takeRecords())
        pipeline.pipeline.refused(deferral[0].ticket)
        #expect(pipeline.takeRecords().isEmpty)
        #expect(pipeline.committableOffset == 2)
    }

    @Test(arguments: [-1, 0, 1])
    func `a newer payload of another worker ends an older one, and no newer one`(later: Int) {
        let owner = DeferredOwner()
        owner.pipeline.register("D", [.device([9], shows: ["score"])])
        let readAt = owner.pipeline.now.wall
        owner.writeGame("waits", readAt: readAt)
        owner.endGame(readAt: readAt + .seconds(later))
        owner.pipeline.pass(.milliseconds(10))
        let sent = owner.pipeline.deliverAll()
        #expect(sent.map(\.body) == (later < 0 ? [body("waits")] : []))
    }

    @Test func `a newer payload of another worker hides a newer one for a moment only`() {
        let owner = DeferredOwner()
        let readAt = owner.pipeline.now.wall
        owner.writeGame("newer", readAt: readAt)
        owner.endGame(readAt: readAt + .seconds(-1))
        let again = owner.pipeline.takeRecords()
        #expect(again.count == 1 && again[0].value.contains("newer"))
    }

    @Test(arguments: [true, false])
    func `a newer payload of another worker ends an older one that waits for another try`(
        isInFlight: Bool
    ) {
        let owner = DeferredOwner()
        owner.pipeline.register("D", [.device([9], shows: ["score"])])
        let readAt = owner.pipeline.now.wall
        owner.writeGame("waits", readAt: readAt)
        owner.pipeline.pass(.milliseconds(10))
        let push = owner.pipeline.take()[0]
        if isInFlight { owner.endGame(readAt: readAt + .seconds(1)) }
        owner.pipeline.answer(push, 503, .serviceUnavailable, retryAfterSeconds: 60)
        if !isInFlight { owner.endGame(readAt: readAt + .seconds(1)) }
        owner.pipeline.pass(.seconds(61))
        #expect(owner.pipeline.deliverAll().isEmpty)
        #expect(owner.pipeline.counters.deferredSuperseded == 1)
        owner.pipeline.pass(.milliseconds(10))
        #expect(owner.pipeline.load.deferred == 0 && owner.pipeline.takeRecords().isEmpty)
        #expect(owner.pipeline.isIdle)
    }

    @Test(arguments: [true, false])
    func `a newer payload of another worker leaves what has joined the older one`(
        isOfOneInstant: Bool
    ) {
        let owner = DeferredOwner()
        owner.pipeline.register("D", [.device([9], shows: ["score"])])
        let readAt = owner.pipeline.now.wall
        owner.writeGame("waits", readAt: readAt)
        owner.pipeline.pass(.milliseconds(10))
        let push = owner.pipeline.take()[0]
        owner.pipeline.answer(push, 503, .serviceUnavailable, retryAfterSeconds: 5)
        if !isOfOneInstant { owner.endGame(readAt: readAt + .seconds(1)) }
        owner.pipeline.pass(.seconds(2))
        owner.pipeline.event("score", game("newest"))
        if isOfOneInstant { owner.endGame(readAt: owner.pipeline.now.wall) }
        owner.pipeline.pass(.seconds(5))
        #expect(owner.pipeline.deliverAll().map(\.body) == [body("newest")])
    }

    @Test(arguments: [-1, 0, 1])
    func `a newer payload of another worker ends no newer one that waits for another try`(
        earlier: Int
    ) {
        let owner = DeferredOwner()
        owner.pipeline.register("D", [.device([9], shows: ["score"])])
        let readAt = owner.pipeline.now.wall
        owner.writeGame("waits", readAt: readAt)
        owner.pipeline.pass(.milliseconds(10))
        let push = owner.pipeline.take()[0]
        owner.endGame(readAt: readAt + .seconds(-earlier))
        owner.pipeline.answer(push, 503, .serviceUnavailable, retryAfterSeconds: 60)
        owner.pipeline.pass(.seconds(61))
        #expect(owner.pipeline.deliverAll().count == (earlier > 0 ? 1 : 0))
    }

    @Test func `a newer payload is not lost by an older one's deferral that says it too`() throws {
        for text in ["oldest", "older"] {
            pipeline.event("hot", game(text))
            pipeline.now.wall = pipeline.now.wall + .seconds(1)
        }
        func come() throws -> SentPush {
            _ = pipeline.pipeline.advanceFanOuts(steps: 1, now: pipeline.now)
            return try #require(pipeline.take().first)
        }
        refuse(pipeline, "newer")
        let first = pipeline.takeRecords()
        // Both fan-outs come to the other device first.
        for _ in 0..<2 { pipeline.answer(try come(), 200) }
        pipeline.answer(try come(), 429, .tooManyRequests, retryAfterSeconds: 60)
        let second = pipeline.takeRecords()
        #expect(second.count == 1 && second[0].value.contains("newer"))
        pipeline.pipeline.refused(first[0].ticket)
        pipeline.answer(try come(), 200)
        pipeline.pipeline.refused(second[0].ticket)
        #expect(pipeline.takeRecords().map(\.ticket) == [second[0].ticket])
    }

    // MARK: Late

    @Test func `a newer payload is not followed by an older one whose event is still fanned out`() {
        pipeline.event("hot", game("old"))
        pipeline.event("goals", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
        _ = pipeline.pipeline.advanceFanOuts(steps: 10, now: pipeline.now)
        #expect(pipeline.deliverAll().map(\.token) == [[8]])
        #expect(pipeline.isIdle && pipeline.committableOffset == 2)
    }

    // MARK: Clocks

    @Test func `a newer payload is sent though the worker's clock was set back since the last one`()
    {
        // Its fan-out goes on, so that accepted payloads are remembered.
        pipeline.event("hot", game("first"))
        pipeline.event("score", game("old"))
        #expect(pipeline.deliverAll().map(\.body) == [body("old")])
        pipeline.now.wall = pipeline.now.wall + .seconds(-2)
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
    }

    @Test func `a newer payload is sent though the last one's worker has a faster clock`() {
        let other = Self.worker()
        other.pass(.seconds(5))
        refuse(other, "old", seconds: 20)
        deferred.log += other.takeRecords().filter { $0.topic == .deferred }.map {
            DeferredFixture.Record(key: $0.key, value: $0.value)
        }
        deferred.assign()
        deferred.read()
        pipeline.pass(.seconds(30))
        // As if the other clock were further ahead.
        pipeline.now.wall = pipeline.now.wall + .seconds(-40)
        pipeline.event("hot", game("first"))
        #expect(pipeline.deliverAll().map(\.body) == [body("old")])
        pipeline.event("score", game("new"))
        #expect(pipeline.deliverAll().map(\.body) == [body("new")])
    }

    @Test func `newer payloads are known for as many keys as bytes allow, the oldest making room`()
    {
        let worker = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.payloadOrderBytesMax = 2 * PipelineFixture.orderBytesPerKey
        }
        worker.register("D", [.device([9], shows: ["s"])])
        for id in ["a", "b", "c"] {
            worker.event("s", EventValue.alert("1", collapseID: id))
            worker.answer(worker.take()[0], 429, .tooManyRequests, retryAfterSeconds: 60)
        }
        worker.acknowledge(worker.takeRecords())
        for id in ["a", "b", "c"] {
            worker.event("s", EventValue.alert("2", collapseID: id))
        }
        #expect(worker.deliverAll().count == 3)
        #expect(worker.takeRecords().count == 2)
        worker.pass(.zero)
        #expect(worker.counters.payloadsForgotten == 1)
    }
}
