// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// A push holds an offset for `holdMax` at most; then Kafka keeps it.
@Suite struct `The hold bound` {
    private func fixture(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> (PipelineFixture, DeferredFixture) {
        let pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        return (pipeline, DeferredFixture(pipeline))
    }

    @Test func `a push that waits is written to the deferred topic before holdMax is over`() {
        let (pipeline, deferred) = fixture()
        let offset = pipeline.event("door")
        pipeline.pass(.seconds(7))
        #expect(deferred.produce().deferred.isEmpty)
        #expect(pipeline.committableOffset == offset)
        pipeline.pass(.seconds(1))
        let records = pipeline.takeRecords()
        #expect(records.map(\.topic) == [.deferred])
        #expect(records[0].key == "production/com.example.Home.push-type.controls/01")
        #expect(pipeline.load.queued == 0)
        #expect(pipeline.committableOffset == offset, "held until Kafka has the record")
        pipeline.acknowledge(records)
        #expect(pipeline.committableOffset == offset + 1)
        #expect(pipeline.counters.deferred == 1)
    }

    @Test func `a deferred record says what its push needs`() throws {
        let (pipeline, deferred) = fixture()
        pipeline.registerControl("B", [2], shows: ["other"])
        pipeline.event("other")
        pipeline.event("door", #"{"priority":5,"ttlSeconds":3600}"#)
        pipeline.answer(pipeline.take().first { $0.token == [1] }!, 503, .serviceUnavailable)
        pipeline.pass(.seconds(9))
        let record = try #require(deferred.produce().deferred.first { $0.key.hasSuffix("/01") })
        #expect(record.contains(#""class":"control""#))
        #expect(record.contains(#""priority":5"#))
        #expect(record.contains(#""attempts":1"#))
        #expect(record.contains(#""subject":"door""#))
        #expect(
            record.contains(#""source":{"topic":"events-0","partition":0,"offset":1}"#))
        #expect(record.contains(#""firstAt":"#))
    }

    @Test func `a back-off that would outlast the bound defers at once`() {
        let (pipeline, deferred) = fixture { settings in
            settings.retryBackoff = Backoff(least: .seconds(600), most: .seconds(600))
        }
        let offset = pipeline.event("door")
        pipeline.answer(pipeline.take()[0], 503, .serviceUnavailable)
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == offset + 1)
    }

    @Test func `a push in flight is not deferred, but its return after the bound is`() {
        let (pipeline, deferred) = fixture()
        pipeline.event("door")
        let push = pipeline.take()[0]
        pipeline.pass(.seconds(20))
        #expect(deferred.produce().deferred.isEmpty)
        pipeline.end(push, .unknown)
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `a payload is deferred under its own key, with its headers`() throws {
        let (pipeline, deferred) = fixture()
        pipeline.register("D", [.device([9], shows: ["door"])])
        pipeline.event("door", #"{"payload":{"aps":{"alert":"a"}},"collapseID":"c 1"}"#)
        pipeline.event("door", #"{"payload":{"aps":{"alert":"b"}}}"#)
        pipeline.pass(.seconds(9))
        let records = deferred.produce().deferred
        #expect(records.count == 2 && Set(records.map(\.key)).count == 2)
        for record in records {
            #expect(record.key.hasPrefix("production/com.example.Home/09/"))
            #expect(record.key.count == "production/com.example.Home/09/".count + 16)
        }
        #expect(records.contains { $0.contains(#""collapseID":"c 1""#) })
        #expect(records.contains { $0.contains(#""payload":{"aps":{"alert":"b"}}"#) })
    }

    @Test func `events that joined are released together`() {
        let (pipeline, deferred) = fixture()
        for _ in 0..<5 { pipeline.event("door") }
        pipeline.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == 5)
    }

    @Test func `a later event of the token is pushed and not kept from it by the deferred one`() {
        let (pipeline, deferred) = fixture()
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        deferred.produce()
        pipeline.event("door")
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a refused deferral is not produced again over a later one of its key`() {
        let (pipeline, _) = fixture()
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        let older = pipeline.takeRecords()
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        let newer = pipeline.takeRecords()
        #expect(older.count == 1 && newer.count == 1)
        pipeline.pipeline.refused(older[0].ticket)
        #expect(pipeline.takeRecords().isEmpty)
        #expect(pipeline.committableOffset == 0, "its events wait for the later record")
        pipeline.acknowledge(newer)
        #expect(pipeline.committableOffset == 2)
    }

    @Test func `a later deferral says all that an earlier one does which Kafka may not have`() {
        let (pipeline, _) = fixture()
        pipeline.event("door", #"{"ttlSeconds":3600}"#)
        pipeline.pass(.seconds(9))
        let older = pipeline.takeRecords()
        let wide = (pipeline.now.wall + .seconds(3600 - 9)).rfc3339
        #expect(older[0].value.contains(wide))
        pipeline.event("door", #"{"ttlSeconds":20}"#)
        pipeline.pass(.seconds(9))
        let newer = pipeline.takeRecords()
        #expect(newer.count == 1 && newer[0].value.contains(wide))
        pipeline.acknowledge(older)
        pipeline.acknowledge(newer)
        pipeline.event("door", #"{"ttlSeconds":20}"#)
        pipeline.pass(.seconds(9))
        #expect(!pipeline.takeRecords()[0].value.contains(wide), "Kafka has the earlier one")
    }

    @Test func `a deferral that Kafka will never take is a dead letter`() {
        let (pipeline, _) = fixture()
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        pipeline.pipeline.tooLarge(pipeline.takeRecords()[0].ticket)
        let letters = pipeline.takeRecords()
        #expect(letters.map(\.topic) == [.deadLetters])
        #expect(letters[0].value.contains("DeferralTooLarge"))
        #expect(pipeline.committableOffset == 0)
        pipeline.acknowledge(letters)
        #expect(pipeline.committableOffset == 1)
    }

    @Test func `deferrals unacknowledged are bounded, and the rest goes on holding`() {
        let (pipeline, deferred) = fixture { $0.unacknowledgedMax = 2 }
        for number in 2..<6 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["s\(number)"])
            pipeline.event("s\(number)")
        }
        pipeline.pass(.seconds(9))
        let records = pipeline.takeRecords()
        #expect(records.count == 2)
        pipeline.acknowledge(records)
        pipeline.pass(.seconds(1))
        #expect(deferred.produce().deferred.count == 2)
    }

    @Test func `a pool whose breaker is open keeps few slots, and events of another go on`() {
        let pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.slots = 128
        }
        for number in 0..<100 {
            pipeline.registerControl(
                "I\(number)", [1, UInt8(number)], shows: ["door-\(number)"],
                environment: number % 2 == 0 ? .production : .development)
        }
        let deferred = DeferredFixture(pipeline)
        pipeline.event("door-0")
        pipeline.answer(pipeline.take(1)[0], 403, .invalidProviderToken)
        for number in 0..<100 {
            pipeline.event("door-\(number)")
            pipeline.pass(.milliseconds(1))
        }
        #expect(deferred.produce().deferred.count >= 50 - max(4, 128 / 16) - 1)
        #expect(pipeline.take(pool: 1).count == 50)
        #expect(pipeline.load.queued <= 8)
    }
}
