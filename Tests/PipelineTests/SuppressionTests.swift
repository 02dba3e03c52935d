// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Suppressions in the pipeline` {
    let token: [UInt8] = [1, 2, 3]

    @Test func `a dead token gets one suppression and its offset waits for the acknowledgement`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        let registeredAt = fixture.now.wall
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered, apnsTimestamp: registeredAt)
        let suppressions = fixture.takeRecords()
        #expect(suppressions.map(\.topic) == [.suppressions])
        #expect(suppressions[0].key == "production/com.example.Home.push-type.controls/010203")
        #expect(suppressions[0].value.contains(#""reason":"Unregistered""#))
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge(suppressions)
        #expect(fixture.committableOffset == 1)
        #expect(fixture.isIdle)
    }

    @Test func `the follow-up of a push in flight is counted when it ends unsent`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let dead = fixture.take()[0]
        fixture.event("door")
        fixture.answer(dead, 410, .unregistered)
        #expect(fixture.counters.unregistered == 1)
        #expect(fixture.counters.suppressed == 1)

        fixture.registerControl("B", [9], shows: ["hall"])
        fixture.event("hall")
        let orphan = fixture.take()[0]
        fixture.event("hall")
        fixture.unregister("B")
        #expect(fixture.counters.unregistered == 2)
        fixture.answer(orphan, 200)
        #expect(fixture.counters.accepted == 1)
        #expect(fixture.take().isEmpty)
    }

    @Test func `a suppressed token is not sent to until it registers again`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        fixture.acknowledge(fixture.takeRecords())
        fixture.pass(.seconds(3))
        fixture.event("door")
        #expect(fixture.take().isEmpty)
        #expect(fixture.counters.suppressed == 1)
        fixture.registerControl("A", token, shows: ["door"])
        fixture.pass(.seconds(3))
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a suppression is never written twice nor older than the one known`() {
        let fixture = PipelineFixture()
        fixture.register("A", [.device(token, shows: ["score"])])
        fixture.event("score", EventValue.alert("1"))
        fixture.event("score", EventValue.alert("2"))
        let sent = fixture.take()
        #expect(sent.count == 2)
        fixture.answer(sent[0], 410, .unregistered)
        fixture.answer(sent[1], 410, .unregistered)
        #expect(fixture.takeRecords().count == 1)
        #expect(fixture.counters.unregistered == 2)
    }

    @Test func `a 410 from before the registration is a strike, and three over an hour suppress`() {
        let fixture = PipelineFixture()
        let diedAt = fixture.now.wall
        fixture.pass(.seconds(60))
        fixture.registerControl("A", token, shows: ["door"])
        for minutes in [0, 30, 31] {
            fixture.pass(.seconds(60 * minutes))
            fixture.event("door")
            let sent = fixture.take()
            #expect(sent.count == 1, "still sent to")
            fixture.answer(sent[0], 410, .unregistered, apnsTimestamp: diedAt)
        }
        #expect(fixture.counters.strikes == 3)
        #expect(fixture.takeRecords().map(\.topic) == [.suppressions])
        fixture.event("door")
        #expect(fixture.take().isEmpty)
    }

    @Test func `three strikes within an hour suppress nothing`() {
        let fixture = PipelineFixture()
        let diedAt = fixture.now.wall
        fixture.pass(.seconds(60))
        fixture.registerControl("A", token, shows: ["door"])
        for _ in 0..<5 {
            fixture.event("door")
            fixture.answer(fixture.take()[0], 410, .unregistered, apnsTimestamp: diedAt)
            fixture.pass(.seconds(600))
        }
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.committableOffset == 5)
    }

    @Test func `an event read after a new registration survives the suppression on the old one`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let old = fixture.take()
        fixture.pass(.seconds(5))
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        fixture.answer(old[0], 410, .unregistered)
        #expect(fixture.deliverAll().map(\.token) == [token])
    }

    @Test func `a small app keeps its tokens, and the push ends as a dead letter`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        for _ in 0..<10 {
            fixture.event("door")
            fixture.answer(fixture.take()[0], 400, .badDeviceToken)
            fixture.pass(.seconds(1))
        }
        let records = fixture.takeRecords()
        #expect(records.count == 10)
        #expect(records.allSatisfy { $0.topic == .deadLetters })
        #expect(fixture.counters.suppressionsWritten == 0)
        fixture.event("door")
        #expect(fixture.take().count == 1, "the next event asks again")
    }

    @Test func `a deploy to the wrong environment prunes nothing`() {
        let fixture = PipelineFixture { $0.slots = 512 }
        fixture.checksEachCall = false
        let tokens = (0..<250).map { [UInt8(0x10), UInt8($0)] }
        for (number, token) in tokens.enumerated() {
            fixture.registerControl("I\(number)", token, shows: ["s\(number)"])
        }
        for round in 0..<2 {
            for number in tokens.indices { fixture.event("s\(number)") }
            for push in fixture.take(250) { fixture.answer(push, 400, .badDeviceToken) }
            fixture.pass(.seconds(round + 1))
        }
        #expect(fixture.counters.rejected == 500)
        #expect(fixture.counters.suppressionsWritten == 0)
    }

    @Test func `a healthy route believes a 400 about one token`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", [9], shows: ["lamp"])
        for _ in 0..<199 {
            fixture.event("lamp")
            #expect(fixture.deliverAll().count == 1)
        }
        fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badDeviceToken)
        fixture.pass(.seconds(3))
        let records = fixture.takeRecords()
        #expect(Set(records.map(\.topic)) == [.suppressions, .deadLetters])
        #expect(fixture.committableOffset == 199)
        fixture.acknowledge(records)
        #expect(fixture.committableOffset == 200)
    }

    @Test(arguments: [128, 129, 300, 512])
    func `a long token is sent, and judged, by its own bytes`(count: Int) {
        let long = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
        let hex = Hexadecimal.encode(long)
        let fixture = PipelineFixture()
        fixture.registerControl("A", long, shows: ["door"])
        fixture.event("door")
        let sent = fixture.take()
        #expect(sent.map(\.token) == [long])
        fixture.answer(sent[0], 410, .unregistered)
        let records = fixture.takeRecords()
        #expect(records.first?.key.hasSuffix("/" + hex) == true)
        fixture.event("door")
        #expect(fixture.take().count == 0, "it is suppressed")
    }

    @Test func `a dead letter names a long token by its own bytes`() {
        let long = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
        let fixture = PipelineFixture()
        fixture.registerControl("A", long, shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badMessageId)
        fixture.pass(.seconds(1))
        #expect(fixture.takeRecords().first?.value.contains(Hexadecimal.encode(long)) == true)
    }
}
