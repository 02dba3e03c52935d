// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// What is written to `deferred`, when, and how much of it.
@Suite struct `Deferrals in the pipeline` {
    private static let key = "production/com.example.Home.push-type.controls/01"

    /// Controls 1, 2, … of which number n shows `sn`, and all of them `hot`.
    private func fixture(
        controls: Int = 1, later: TopicBinding = TopicBinding(decode: .key, delay: .seconds(60)),
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(bindings: [.standard, later]) { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.breakerBackoff = Backoff(least: .seconds(600), most: .seconds(600))
            adjust(&settings)
        }
        for number in 1...controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["s\(number)", "hot"])
        }
        return fixture
    }

    private func instant(_ name: String, in text: String) throws -> WallTime {
        let start = try #require(text.firstRange(of: #""\#(name)":""#)).upperBound
        return try #require(WallTime(rfc3339: String(text[start...].prefix { $0 != "\"" })))
    }

    @Test(arguments: [(5, 4), (10, 8), (60, 58)])
    func `deferrals come a fifth of the bound before it, and two seconds at most`(
        bound: Int, due: Int
    ) {
        let fixture = fixture { $0.holdMax = .seconds(bound) }
        fixture.event("hot")
        fixture.pass(.seconds(due) - .milliseconds(100))
        #expect(fixture.takeRecords().isEmpty)
        fixture.pass(.milliseconds(600))
        #expect(fixture.takeRecords().map(\.topic) == [.deferred])
    }

    @Test func `deferrals are at once where pushes that rest for long fill the slots`() {
        let fixture = fixture(controls: 200) { settings in
            settings.slots = 64
            settings.immediateFanOutMax = 4
        }
        fixture.event("hot", binding: 1)
        var deferred: Set<String> = []
        for _ in 0..<60 {
            fixture.pass(.milliseconds(100))
            let records = fixture.takeRecords()
            fixture.acknowledge(records)
            deferred.formUnion(records.map(\.key))
        }
        // Half of the slots may wait for events that join them.
        #expect(deferred.count >= 200 - 32)
        fixture.pass(.seconds(3))
        deferred.formUnion(fixture.takeRecords().map(\.key))
        #expect(deferred.count == 200)
    }

    @Test(arguments: [(32, 60), (200, 2)])
    func `deferrals leave alone what rests while there are slots, or will go soon`(
        controls: Int, delay: Int
    ) {
        let later = TopicBinding(decode: .key, delay: .seconds(delay))
        let fixture = fixture(controls: controls, later: later) { settings in
            settings.slots = 64
            settings.immediateFanOutMax = 4
        }
        fixture.event("hot", binding: 1)
        for _ in 0..<15 { fixture.pass(.milliseconds(100)) }
        #expect(fixture.load.resting >= 32)
        #expect(fixture.counters.deferred == 0)
    }

    @Test(arguments: [(7, 0), (9, 1)])
    func `deferrals are at once where the next try would come too late`(after: UInt16, records: Int)
    {
        let fixture = fixture()
        fixture.event("hot")
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable, retryAfterSeconds: after)
        #expect(fixture.takeRecords().count == records)
    }

    @Test func `deferrals say when the next try is due`() throws {
        let fixture = fixture {
            $0.retryBackoff = Backoff(least: .seconds(600), most: .seconds(600))
        }
        fixture.event("hot")
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        let record = try #require(fixture.takeRecords().first)
        #expect(try instant("notBefore", in: record.value) >= fixture.now.wall + .seconds(60))
    }

    @Test func `deferrals say when the first of two events was, and what each asks for`() throws {
        let fixture = fixture()
        let first = fixture.event("hot", #"{"v":1,"ttlSeconds":3600}"#)
        let expiresAt = fixture.now.wall + .seconds(3600)
        // The key alone says what changed; it may live for less long.
        fixture.event("hot", binding: 1)
        fixture.pass(.seconds(9))
        let record = try #require(fixture.takeRecords().first).value
        #expect(record.contains(#""offset":\#(first)}"#))
        #expect(try instant("expiresAt", in: record) >= expiresAt)
        #expect(try instant("notBefore", in: record) > fixture.now.wall + .seconds(50))
    }

    @Test func `deferrals of a payload say how Apple is to keep it, and when it was read`() throws {
        let fixture = fixture()
        fixture.register("D", [.device([9], shows: ["door"])])
        let readAt = fixture.now.wall
        fixture.event(
            "door", #"{"v":1,"apnsExpiration":"none","payload":{"aps":{"alert":"a"}}}"#)
        fixture.pass(.seconds(9))
        let record = try #require(fixture.takeRecords().first).value
        #expect(record.contains(#""apnsExpiration":"none""#))
        #expect(try instant("payloadAt", in: record) == readAt)
    }

    @Test func `deferrals of a payload say the newer one, which was to wait for longer`() throws {
        let later = TopicBinding(decode: .json, delay: .seconds(60))
        let fixture = PipelineFixture(bindings: [.standard, later]) {
            $0.holdMax = .seconds(10)
        }
        fixture.register("D", [.device([9], shows: ["door"])])
        for (binding, text) in ["old", "new"].enumerated() {
            fixture.event(
                "door", EventValue.alert(text, collapseID: "c"),
                binding: binding)
            fixture.pass(.milliseconds(5))
        }
        fixture.pass(.seconds(9))
        let record = try #require(fixture.takeRecords().first).value
        #expect(record.contains(#""alert":"new""#))
    }

    @Test func `deferrals are no more than may wait for Kafka, also after a failed try`() {
        let fixture = fixture(controls: 3) { settings in
            settings.unacknowledgedMax = 1
            settings.retryBackoff = Backoff(least: .seconds(600), most: .seconds(600))
        }
        fixture.event("hot")
        for _ in 0..<3 {
            for push in fixture.take() { fixture.answer(push, 503, .serviceUnavailable) }
        }
        #expect(fixture.takeRecords().count == 1)
        #expect(fixture.load.resting == 2)
    }

    // MARK: What stands still

    @Test(arguments: [true, false])
    func `deferrals leave an open breaker sixteen of its pushes, and wait with the others`(
        isRoute: Bool
    ) throws {
        let fixture = fixture(controls: 40)
        fixture.event("s1")
        if isRoute {
            fixture.answer(fixture.take()[0], 400, .badTopic)
        } else {
            fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        }
        fixture.event("hot")
        fixture.pass(.milliseconds(100))
        #expect(fixture.load.queued == 16)
        let records = fixture.takeRecords()
        #expect(records.count == 24)
        for record in records {
            #expect(try instant("notBefore", in: record.value) > fixture.now.wall + .seconds(8))
        }
    }

    @Test func `deferrals are no more than may wait for Kafka, also behind an open breaker`() {
        let fixture = fixture(controls: 40) { $0.unacknowledgedMax = 5 }
        fixture.event("s1")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        fixture.event("hot")
        fixture.pass(.milliseconds(100))
        #expect(fixture.takeRecords().count == 5)
        #expect(fixture.load.queued == 35)
    }

    /// Of 256 slots `queued` are taken by a pool that sends nothing for `stuck`.
    private func besideAnother(
        queued: Int, stuck: Duration = .milliseconds(2600), isBusy: Bool = true
    ) -> PipelineFixture {
        let fixture = fixture(controls: queued)
        fixture.registerControl("D", [250], shows: ["dev"], environment: .development)
        fixture.registerControl("E", [251], shows: ["dev"], environment: .development)
        if isBusy { fixture.event("dev") }
        for number in 1...queued { fixture.event("s\(number)") }
        // One of the other pool's goes out, and one stays behind.
        if isBusy { fixture.answer(fixture.take(1, pool: 1)[0], 200) }
        fixture.pass(stuck)
        return fixture
    }

    @Test func `deferrals bring a pool that stands still down to its share, and touch no other`() {
        let fixture = besideAnother(queued: 200)
        #expect(fixture.load.queued == 128 + 1)
        #expect(fixture.deliverAll(pool: 1).count == 1)
    }

    @Test func `deferrals take nothing from a pool while there are slots enough`() {
        #expect(besideAnother(queued: 150).takeRecords().isEmpty)
    }

    @Test func `deferrals take nothing from a pool while nobody else sends`() {
        #expect(besideAnother(queued: 200, isBusy: false).takeRecords().isEmpty)
    }

    @Test func `deferrals take nothing from a pool whose queue moves`() {
        #expect(besideAnother(queued: 200, stuck: .milliseconds(2400)).takeRecords().isEmpty)
    }

    @Test func `deferrals of a pool that stands still make room for one that only waits`() {
        let fixture = fixture(controls: 200)
        fixture.registerControl("D", [250], shows: ["dev"], environment: .development)
        for number in 1...200 { fixture.event("s\(number)") }
        fixture.event("dev")
        fixture.pass(.milliseconds(2600))
        #expect(!fixture.takeRecords().isEmpty)
    }

    // MARK: Kafka's answers

    @Test func `deferrals that are refused after a later one has arrived release their events`() {
        let fixture = fixture()
        let (older, newer) = twoOfOneKey(fixture)
        fixture.acknowledge([newer])
        #expect(fixture.committableOffset == 0)
        fixture.pipeline.refused(older.ticket)
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.committableOffset == 2)
    }

    @Test func `deferrals that are refused are produced again though an earlier one has arrived`() {
        let fixture = fixture()
        let (older, newer) = twoOfOneKey(fixture)
        fixture.acknowledge([older])
        #expect(fixture.committableOffset == 1)
        fixture.pipeline.refused(newer.ticket)
        #expect(fixture.takeRecords().map(\.ticket) == [newer.ticket])
        #expect(fixture.committableOffset == 1)
    }

    /// Both under way.
    private func twoOfOneKey(_ fixture: PipelineFixture) -> (ProducedRecord, ProducedRecord) {
        let records = (0..<2).map { _ in
            fixture.event("hot")
            fixture.pass(.seconds(9))
            return fixture.takeRecords()
        }
        return (records[0][0], records[1][0])
    }

    @Test func `deferrals that Kafka never takes are told by their source, as rejected`() throws {
        let fixture = fixture()
        fixture.event("hot")
        #expect(fixture.deliverAll().count == 1)
        let offset = fixture.event("hot")
        let began = fixture.now.wall.rfc3339
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        fixture.pass(.seconds(9))
        fixture.pipeline.tooLarge(fixture.takeRecords()[0].ticket)
        let letter = try #require(fixture.takeRecords().first)
        #expect(letter.topic == .deadLetters)
        #expect(letter.value.contains(#""topic":"events-0""#))
        #expect(letter.value.contains(#""offset":\#(offset)"#))
        #expect(letter.value.contains(#""firstAt":"\#(began)""#))
        #expect(fixture.counters.deferred == 1 && fixture.counters.rejected == 1)
        #expect(fixture.counters.recordsRefused == 1)
    }
}
