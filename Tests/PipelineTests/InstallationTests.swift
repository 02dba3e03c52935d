// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Events for one installation, whose tokens other installations must never be taken for.
@Suite struct `Installations in the pipeline` {
    private func worker(
        bindings: [TopicBinding] = [.standard],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        PipelineFixture(bindings: bindings) { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.events.allowInstallations = true
            adjust(&settings)
        }
    }

    /// A phone with a device token of this byte, and a control of the next.
    private func register(
        _ installation: String, _ byte: UInt8, shows subject: String = "order-7",
        with fixture: PipelineFixture
    ) {
        fixture.register(
            installation, [.device([byte], shows: [subject], hearsChanges: true)], handler: "Device"
        )
        fixture.register(installation, [.control([byte + 1], shows: [subject])])
    }

    private func alert(_ installation: String, collapseID: String? = nil) -> String {
        let collapse = collapseID.map { #","collapseID":"\#($0)""# } ?? ""
        return
            #"{"installation":"\#(installation)","payload":{"aps":{"alert":"for \#(installation)"}}\#(collapse)}"#
    }

    @Test func `an event for an installation reaches its tokens alone, whatever others show`() {
        let fixture = worker()
        register("A", 1, with: fixture)
        register("B", 11, with: fixture)
        fixture.register("A", [.device([3], shows: [])], environment: .development)
        // The key would name a subject that both show, and decides the partition alone.
        fixture.event("order-7", alert("A"))
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.deliverAll(pool: 1).map(\.token) == [[3]])
        fixture.event(nil, #"{"installation":"A"}"#)
        #expect(fixture.deliverAll().map(\.token).inOrder == [[1], [2]])
        fixture.event("order-7", #"{"installation":"B","classes":["control"]}"#)
        #expect(fixture.deliverAll().map(\.token) == [[12]])
        fixture.event("order-7", #"{"installation":"B","kinds":["lamp"]}"#)
        fixture.event("order-7", #"{"installation":"C"}"#)
        #expect(fixture.counters.eventsPassedOver == 1 && fixture.counters.eventsUnmatched == 1)
        #expect(fixture.deliverAll().isEmpty && fixture.isIdle)
        let examples = fixture.pipeline.fanOut.tally.sample(.unmatched, topic: 0).count
        #expect(examples == 0, "a part of a key is shown to nobody")
    }

    @Test func `an installation and a subject of one name are not taken for each other`() {
        let fixture = worker()
        register("door", 1, shows: "a", with: fixture)
        register("b", 11, shows: "door", with: fixture)
        fixture.restrict(.subject(Array("door".utf8), app: PipelineFixture.app), .drop)
        fixture.event("x", #"{"installation":"door"}"#)
        #expect(fixture.deliverAll().map(\.token).inOrder == [[1], [2]])
        fixture.event("door")
        #expect(fixture.deliverAll().isEmpty && fixture.counters.subjectsDropped == 1)
    }

    @Test func `an event for an installation becomes a letter where that is not allowed`() throws {
        let fixture = PipelineFixture()
        fixture.register("A", [.device([1], shows: ["order-7"])])
        fixture.event("order-7", alert("A"))
        let letter = try #require(fixture.takeRecords().first).letter()
        #expect(letter.reason == "installationRefused" && letter.subject == [])
        #expect(letter.message?.contains("intake.allowInstallations") == true)
        #expect(fixture.deliverAll().isEmpty)
    }

    @Test func `an installation that registers just after its event is told, and no other`() {
        for value in [alert("A"), #"{"installation":"A","pushType":"background"}"#] {
            let fixture = worker { $0.registrationGrace = .seconds(2) }
            fixture.event("order-7", value)
            fixture.register("B", [.device([11], shows: ["A", "order-7"])])
            fixture.register("A", [.device([1], shows: [])])
            #expect(fixture.deliverAll().map(\.token) == [[1]])
            fixture.pass(.seconds(3))
            fixture.register("A", [.device([3], shows: [])], handler: "late")
            #expect(fixture.deliverAll().isEmpty && fixture.isIdle)
        }
        let plain = worker { $0.registrationGrace = .seconds(2) }
        plain.event("order-7", #"{"installation":"A"}"#)
        plain.registerControl("B", [12], shows: ["A"])
        plain.registerControl("A", [2], shows: ["x"])
        #expect(plain.deliverAll().map(\.token) == [[2]])
    }

    @Test func `a payload that waits is not sent once its token is another installation's`() {
        let fixture = worker()
        register("A", 1, with: fixture)
        fixture.event(nil, alert("A"))
        // The same phone, and what it shows stays the same.
        fixture.register("B", [.device([1], shows: ["order-7"])])
        fixture.register("A", [], handler: "Device")
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `a deferred payload names the installation, by which its next owner judges it`()
        throws
    {
        let before = worker()
        register("A", 1, with: before)
        let log = try deferAlert(before)
        #expect(log[0].contains(#""installation":"A""#) && !log[0].contains("subject"))
        for owner in ["A", "B"] {
            let fixture = worker()
            register(owner, 1, with: fixture)
            let deferred = DeferredFixture(fixture)
            deferred.log = log
            deferred.assign()
            for _ in 0..<3 { fixture.pass(.seconds(20)) }
            #expect(fixture.deliverAll().count == (owner == "A" ? 1 : 0))
            #expect(fixture.counters.unsubscribed == (owner == "A" ? 0 : 1))
        }
        // One that keeps no lists of installations cannot tell, and loses nothing.
        let without = worker { $0.events.allowInstallations = false }
        register("A", 1, with: without)
        let deferred = DeferredFixture(without)
        deferred.log = log
        deferred.assign()
        for _ in 0..<3 { without.pass(.seconds(20)) }
        #expect(without.deliverAll().count == 1)
    }

    private func deferAlert(_ fixture: PipelineFixture) throws -> [DeferredFixture.Record] {
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .pause)
        fixture.event("order-7", alert("A"))
        fixture.pass(.seconds(9))
        let log = deferred.produce().deferred
        #expect(log.count == 1)
        return log
    }

    @Test func `a deferred payload of an installation that replaced a subject's is its own`() throws
    {
        let fixture = worker()
        register("A", 1, with: fixture)
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .pause)
        fixture.event("order-7", EventValue.alert("for all", collapseID: "news"))
        fixture.event("order-7", alert("A", collapseID: "news"))
        fixture.pass(.seconds(9))
        let record = try #require(deferred.produce().deferred.first)
        #expect(record.contains(#""subject":"order-7""#) && record.contains(#""installation":"A""#))
        deferred.read()
        fixture.register("B", [.device([1], shows: ["order-7"])])
        fixture.register("A", [], handler: "Device")
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), nil)
        for _ in 0..<3 { fixture.pass(.seconds(20)) }
        #expect(fixture.take().isEmpty && fixture.counters.unsubscribed == 1)
    }

    @Test func `a letter names the installation of the payload, by which a redrive is judged`()
        throws
    {
        let fixture = worker()
        register("A", 1, with: fixture)
        fixture.event("order-7", alert("A"))
        fixture.answer(fixture.take()[0], 400, .badCollapseId)
        fixture.pass(.seconds(1))
        let record = try #require(fixture.takeRecords().first)
        let letter = try record.letter()
        #expect(letter.installation == "A" && letter.subject == [])
        #expect(record.key == "events-0/0/0")
    }

    @Test func `an event for an installation of very many tokens is split as any other`() {
        let topic = ShardTopic(binding: 0, partitions: 4)
        func worker() -> PipelineFixture {
            let fixture = self.worker {
                $0.splitAbove = 19
                $0.shards = topic
            }
            for number in 0..<20 {
                fixture.register(
                    "A", [.control([UInt8(number), 7], shows: [])], handler: "H\(number)")
            }
            fixture.registerControl("B", [99, 7], shows: ["A"])
            return fixture
        }
        let fixture = worker()
        fixture.event("order-7", #"{"installation":"A"}"#)
        let shards = fixture.takeRecords()
        #expect(shards.count == 4 && fixture.deliverAll().isEmpty)
        let reader = worker()
        for shard in shards { reader.event(shard.key, shard.value) }
        reader.pass(.milliseconds(1))
        #expect(reader.deliverAll().map(\.token).inOrder == (0..<20).map { [$0, 7] })
        // Kafka takes none of them.
        for shard in shards { fixture.pipeline.refused(shard.ticket) }
        fixture.pass(.seconds(3))
        #expect(fixture.deliverAll().map(\.token).inOrder == (0..<20).map { [$0, 7] })
    }

    @Test func `explain says whom a record for an installation would reach`() {
        let fixture = worker()
        register("A", 1, with: fixture)
        register("B", 11, with: fixture)
        let found = fixture.trial("order-7", alert("A"))
        #expect(found.event?.installation == "A" && found.event?.subject == [])
        #expect(found.counts == [.push(.alert): 1, .passedOver(.otherPushType): 1])
        #expect(fixture.trial(nil, #"{"installation":"a"}"#).counts.isEmpty)
        // What its tokens show is told without the list that the event goes through.
        let shows = fixture.explain(installation: "A").map(\.places.shows)
        let subject = Array("order-7".utf8)
        #expect(shows.count == 2 && shows.allSatisfy { $0.map(\.subject) == [subject] })
    }
}
