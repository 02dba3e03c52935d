// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A device token stays the same when another person signs in on the phone: a payload goes to whoever
/// shows its subject when it is sent.
@Suite struct `Whose phone a payload goes to` {
    private let alert = EventValue.alert("for Alice")

    /// - Parameter holdMax: how long pushes wait in memory.
    private func worker(
        holdMax: Duration = .seconds(10), bindings: [TopicBinding] = [.standard]
    ) -> PipelineFixture {
        PipelineFixture(bindings: bindings) { settings in
            settings.holdMax = holdMax
            settings.registrationGrace = .zero
        }
    }

    /// This person is the one who has signed in on the phone.
    private func signIn(
        _ people: String..., on phone: PipelineFixture, installation: String = "I",
        handler: String = "H"
    ) {
        phone.register(
            installation, [.device([1], shows: people.map { "inbox-\($0)" })], handler: handler)
    }

    private func pauseAll(_ worker: PipelineFixture, _ action: Restriction.Action?) {
        worker.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), action)
    }

    /// A payload of `subject` that waits in `deferred`, in a partition of this worker.
    private func deferAlert(
        _ worker: PipelineFixture, _ subject: String = "inbox-alice"
    ) -> DeferredFixture {
        let deferred = DeferredFixture(worker)
        deferred.assign()
        pauseAll(worker, .pause)
        worker.event(subject, alert)
        worker.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        deferred.read()
        return deferred
    }

    // MARK: In memory

    @Test func `a payload that waits is not sent to who has signed in on the phone since`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        let offset = fixture.event("inbox-alice", alert)
        signIn("bob", on: fixture)
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        #expect(fixture.committableOffset == offset + 1, "it holds no offset any more")
    }

    @Test func `a payload that a newcomer is owed and has no slot yet is not sent to the next one`()
    {
        let fixture = PipelineFixture(bindings: [.standard]) { settings in
            settings.slots = 1
            settings.registrationGrace = .seconds(30)
        }
        fixture.registerControl("A", [9], shows: ["door"])
        for number in 0..<3 { fixture.event("inbox-alice", EventValue.alert("\(number)")) }
        fixture.event("door")
        // Alice registers just after these events, while another push has the only slot.
        signIn("alice", on: fixture)
        #expect(fixture.load.fanOuts == 1)
        signIn("bob", on: fixture)
        var told: [String] = []
        for _ in 0..<40 {
            told += fixture.deliverAll().filter { $0.token == [1] }.map(\.body)
            fixture.pass(.seconds(1))
        }
        #expect(told.isEmpty && fixture.counters.unsubscribed == 3)
        #expect(fixture.isIdle && fixture.committableOffset == 4)
        let explained = fixture.explain(token: [1])[0].outcomes
        #expect(explained.map(\.kind) == [.unsubscribed, .unsubscribed, .unsubscribed])
        #expect(Set(explained.map(\.event?.offset)) == [0, 1, 2])
    }

    @Test func `a payload is not sent to who has signed in with another installation`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        fixture.event("inbox-alice", alert)
        signIn("bob", on: fixture, installation: "J")
        fixture.unregister("I")
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
    }

    @Test func `a failed try of a payload is the last once its subject is not shown`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        fixture.event("inbox-alice", alert)
        let push = fixture.take()[0]
        signIn("bob", on: fixture)
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.pass(.seconds(60))
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        fixture.event("inbox-bob", EventValue.alert("for Bob"))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a payload that rests before another try ends when its subject is not shown`() {
        let fixture = worker(holdMax: .seconds(600))
        signIn("alice", on: fixture)
        fixture.event("inbox-alice", alert)
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        #expect(fixture.load.resting == 1)
        signIn("bob", on: fixture)
        #expect(fixture.load.resting == 0 && fixture.counters.unsubscribed == 1)
    }

    @Test func `a payload is sent while any registration of its token shows its subject`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        signIn("alice", on: fixture, handler: "another")
        for people in [["alice", "carol"], ["alice"], []] {
            fixture.event("inbox-alice", alert)
            fixture.register(
                "I",
                people.isEmpty ? [] : [.device([1], shows: people.map { "inbox-\($0)" })])
            #expect(fixture.deliverAll().count == 1, "\(people)")
        }
        #expect(fixture.counters.unsubscribed == 0)
    }

    @Test func `a push without a payload is sent, whoever has the phone`() {
        let fixture = worker()
        fixture.registerControl("A", [1], shows: ["door", "hall"])
        fixture.event("door")
        fixture.registerControl("A", [1], shows: ["hall"])
        #expect(fixture.deliverAll().count == 1 && fixture.counters.unsubscribed == 0)
    }

    @Test func `the follow-up for who is there still is sent when the push before it is not owed`()
    {
        let fixture = worker()
        signIn("alice", "family", on: fixture)
        fixture.event("inbox-alice", EventValue.alert("for Alice", collapseID: "news"))
        let push = fixture.take()[0]
        fixture.event("inbox-family", EventValue.alert("for all", collapseID: "news"))
        signIn("family", on: fixture)
        fixture.answer(push, 503, .serviceUnavailable)
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"for all"}}"#])
        #expect(fixture.counters.unsubscribed == 1)
    }

    @Test func `a follow-up ends alone when its subject is not shown`() {
        let fixture = worker(holdMax: .seconds(600))
        signIn("alice", "family", on: fixture)
        fixture.event("inbox-family", EventValue.alert("for all", collapseID: "news"))
        let push = fixture.take()[0]
        fixture.event("inbox-alice", EventValue.alert("for Alice", collapseID: "news"))
        signIn("family", on: fixture)
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.pass(.seconds(60))
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"for all"}}"#])
        #expect(fixture.counters.unsubscribed == 1)
    }

    @Test func `a waiting push whose newest payload is not owed makes way for its follow-up`() {
        let delayed = TopicBinding(decode: .json, delay: .seconds(5))
        let fixture = worker(bindings: [.standard, delayed])
        fixture.assign(topic: 1, startOffset: 0)
        signIn("alice", "family", on: fixture)
        fixture.event("inbox-alice", EventValue.alert("for Alice", collapseID: "news"))
        fixture.event("inbox-family", EventValue.alert("for all", collapseID: "news"), binding: 1)
        signIn("family", on: fixture)
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        fixture.pass(.seconds(5))
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"for all"}}"#])
    }

    // MARK: In the deferred topic

    @Test func `a deferred payload is not sent to who has signed in on the phone since`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        let deferred = deferAlert(fixture)
        signIn("bob", on: fixture)
        fixture.pass(.seconds(1200))
        pauseAll(fixture, nil)
        fixture.pass(.seconds(1))
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(31))
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        #expect(deferred.produce().deferred.map(\.value) == [nil], "it ends with a tombstone")
        #expect(fixture.load.deferred == 0)
    }

    @Test func `a push made of a row ends in memory too, with its row`() {
        let fixture = worker()
        signIn("alice", on: fixture)
        let deferred = deferAlert(fixture)
        pauseAll(fixture, nil)
        fixture.pass(.seconds(1))
        #expect(fixture.load.queued == 1)
        signIn("bob", on: fixture)
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        fixture.pass(.seconds(1))
        #expect(deferred.produce().deferred.map(\.value) == [nil])
    }

    @Test func `a deferred payload waits for a registration that is on its way`() {
        let before = worker()
        signIn("alice", on: before)
        let log = deferAlert(before).log
        // The next owner is behind: it knows who had the phone before Alice.
        let fixture = worker()
        signIn("bob", on: fixture)
        let deferred = DeferredFixture(fixture)
        deferred.log = log
        deferred.assign()
        fixture.pass(.seconds(1))
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 0)
        signIn("alice", on: fixture)
        fixture.pass(.seconds(30))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a deferred payload is the newer event's, and so is its subject`() throws {
        let fixture = worker()
        signIn("alice", "family", on: fixture)
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        pauseAll(fixture, .pause)
        fixture.event("inbox-family", EventValue.alert("for all", collapseID: "news"))
        fixture.event("inbox-alice", EventValue.alert("for Alice", collapseID: "news"))
        fixture.pass(.seconds(9))
        let record = try #require(deferred.produce().deferred.first)
        #expect(record.contains(#""subject":"inbox-family""#))
        #expect(record.contains(#""payloadOf":"inbox-alice""#))
        deferred.read()
        signIn("family", on: fixture)
        pauseAll(fixture, nil)
        for _ in 0..<3 { fixture.pass(.seconds(20)) }
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
    }

    // MARK: Of several subjects, and of very many tokens

    @Test func `a payload about several subjects is sent while its token shows one of them`() throws
    {
        var both = TopicBinding(decode: .json, subject: try SubjectTemplate("inbox-{/to}"))
        both.subjects = [try SubjectTemplate("inbox-{/cc}")]
        both.push.payload = try PushTemplate(.map([("aps", .map([("alert", .text("for both"))]))]))
        let fixture = worker(bindings: [both])
        for left in ["alice", "family", "bob"] {
            signIn("alice", "family", on: fixture)
            let bodies = fixture.pipeline.state.pushes.bodies.count
            fixture.event(nil, #"{"to":"alice","cc":"family"}"#)
            let bodiesThen = fixture.pipeline.state.pushes.bodies.count
            #expect(bodiesThen == bodies + 1, "both subjects share it")
            signIn(left, on: fixture)
            #expect(fixture.deliverAll().count == (left == "bob" ? 0 : 1), "\(left)")
        }
    }

    @Test func `of a list that is too long to search every registered token is sent the payload`() {
        let fixture = PipelineFixture {
            $0.slots = 1024
            $0.registrationGrace = .zero
        }
        fixture.checksEachCall = false
        for number in 0...Audience.searchedMax {
            let token: [UInt8] = [1, UInt8(number >> 8), UInt8(number & 255)]
            fixture.register("I\(number)", [.device(token, shows: ["all"])])
        }
        fixture.event("all", alert)
        fixture.pass(.milliseconds(1))
        fixture.register("I0", [.device([1, 0, 0], shows: ["nothing"])])
        #expect(fixture.deliverAll().count == Audience.searchedMax, "one ended: 256 are searched")
        fixture.register("J", [.device([2], shows: ["all"])])
        fixture.event("all", alert)
        fixture.pass(.milliseconds(1))
        fixture.register("K", [.device([3], shows: ["all"])])
        fixture.register("I1", [.device([1, 0, 1], shows: ["nothing"])])
        #expect(fixture.deliverAll().count == Audience.searchedMax + 1)
        fixture.checkInvariants()
    }

    // MARK: What is told of it

    @Test func `explain says that a payload was not sent, from memory and from the topic`() throws {
        let fixture = worker()
        signIn("alice", on: fixture)
        _ = deferAlert(fixture)
        fixture.event("inbox-alice", alert)
        signIn("bob", on: fixture)
        pauseAll(fixture, nil)
        for _ in 0..<3 { fixture.pass(.seconds(20)) }
        let outcomes = try #require(fixture.explain(token: [1]).first).outcomes
        #expect(outcomes.map(\.kind) == [.unsubscribed, .unsubscribed])
        #expect(Set(outcomes.map(\.event?.offset)) == [0, 1])
    }

    @Test func `a letter names the subject of the payload, by which a redrive is judged`() throws {
        let fixture = worker()
        signIn("alice", "family", on: fixture)
        fixture.event("inbox-family", EventValue.alert("for all", collapseID: "news"))
        fixture.event("inbox-alice", EventValue.alert("for Alice", collapseID: "news"))
        fixture.answer(fixture.take()[0], 400, .badCollapseId)
        fixture.pass(.seconds(1))
        let letter = try #require(fixture.takeRecords().first).letter()
        #expect(letter.subject == Array("inbox-family".utf8))
        #expect(letter.payloadSubject == Array("inbox-alice".utf8))
    }
}
