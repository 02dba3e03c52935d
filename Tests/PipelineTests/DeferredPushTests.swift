// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// Whoever owns a partition of `deferred` sends what waits in it.
@Suite struct `Deferred pushes` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        deferred = DeferredFixture(pipeline)
    }

    private static let key = "production/com.example.Home.push-type.controls/01"

    /// A record as another worker would write it.
    private func record(
        after delay: Duration = .zero, ttl: Duration = .seconds(3600), attempts: Int = 0,
        more: String = "", key: String = Self.key
    ) -> DeferredFixture.Record {
        let (notBefore, expiresAt) = (pipeline.now.wall + delay, pipeline.now.wall + ttl)
        return DeferredFixture.Record(
            key: key,
            value: #"{"v":1,"notBefore":""# + notBefore.rfc3339 + #"","expiresAt":""#
                + expiresAt.rfc3339 + #"","class":"control","attempts":\#(attempts)"# + more + "}")
    }

    @Test func `a push is sent when its time has come, and a tombstone is written`() {
        deferred.assign()
        deferred.write(record(after: .seconds(30)))
        deferred.read()
        pipeline.pass(.seconds(29))
        #expect(pipeline.take().isEmpty)
        pipeline.pass(.seconds(1))
        let sent = pipeline.take()
        #expect(sent.map(\.token) == [[1]])
        #expect(deferred.produce().deferred.isEmpty)
        pipeline.answer(sent[0], 200)
        pipeline.pass(.zero)
        let ended = deferred.produce().deferred
        #expect(ended.map(\.key) == [Self.key])
        #expect(ended[0].value == nil && ended[0].endedOffset == 0)
        deferred.read()
        pipeline.pass(.seconds(60))
        #expect(pipeline.take().isEmpty && pipeline.load.deferred == 0)
    }

    @Test func `nothing is sent before the partition has been replayed to its end`() {
        deferred.write(record())
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil, endedOffset: 0))
        deferred.assign()
        pipeline.pass(.seconds(60))
        #expect(pipeline.take().isEmpty)
        #expect(deferred.produce().deferred.isEmpty, "the tombstone is there already")
    }

    @Test func `a record hidden by an older tombstone is rewritten and sent`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let first = pipeline.take()
        // Another worker defers the token again before the tombstone.
        deferred.write(record(after: .seconds(5)))
        pipeline.answer(first[0], 200)
        pipeline.pass(.zero)
        deferred.produce()
        deferred.read()
        let again = deferred.produce().deferred
        #expect(again.count == 1 && again[0].value != nil)
        deferred.read()
        pipeline.pass(.seconds(6))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.map(\.endedOffset) == [1])
        deferred.read()
        #expect(pipeline.load.deferred == 0)
        #expect(pipeline.counters.deferredRewritten == 1)
    }

    @Test func `two tombstones under way do not have a push rewritten for ever`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let first = pipeline.take()
        deferred.write(record())
        pipeline.answer(first[0], 200)
        pipeline.pass(.zero)
        deferred.produce()
        // The tombstone of the first hides the second, which is rewritten, and ends meanwhile.
        deferred.read()
        #expect(pipeline.deliverAll().count == 0)
        pipeline.pass(.seconds(1))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.map(\.endedOffset) == [1, 1])
        deferred.read()
        #expect(pipeline.load.deferred == 0)
        #expect(deferred.produce().deferred.isEmpty)
    }

    @Test func `what is written again takes no claim of what was deferred since`() {
        deferred.assign()
        deferred.write(record(after: .seconds(600), ttl: .seconds(3600)))
        deferred.read()
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        let deferral = pipeline.takeRecords()
        // Has the first one written again.
        deferred.write(record(after: .seconds(600), ttl: .seconds(700)))
        deferred.read()
        let again = pipeline.takeRecords()
        #expect(deferral.count == 1 && again.map(\.endedOffset) == [1])
        pipeline.pipeline.refused(deferral[0].ticket)
        #expect(pipeline.takeRecords().map(\.ticket) == [deferral[0].ticket])
        pipeline.acknowledge(again)
        #expect(pipeline.committableOffset == 0, "its events wait for their own record")
    }

    @Test func `a later record that promises less is put right, so that a replay knows all`() {
        deferred.assign()
        deferred.write(record(after: .seconds(60), ttl: .seconds(3600)))
        deferred.write(record(after: .seconds(60), ttl: .seconds(90)))
        deferred.read()
        #expect(deferred.produce().deferred.count == 1)
        deferred.read()
        #expect(deferred.produce().deferred.isEmpty)
        deferred.revoke()
        deferred.log.removeFirst(2)
        deferred.assign()
        pipeline.pass(.seconds(300))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a replay writes nothing again that has been put right since`() {
        deferred.write(record())
        deferred.write(record())
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil, endedOffset: 0))
        deferred.write(record())
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil, endedOffset: 3))
        deferred.assign()
        #expect(deferred.produce().deferred.isEmpty)
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `a replay rewrites a record that a tombstone still hides`() {
        deferred.write(record())
        deferred.write(record(after: .seconds(5)))
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil, endedOffset: 0))
        deferred.assign()
        let again = deferred.produce().deferred
        #expect(again.count == 1 && again[0].value != nil)
    }

    @Test func `an operator's tombstone ends a push under way, and nothing follows it`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let sent = pipeline.take()
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil))
        deferred.read()
        pipeline.answer(sent[0], 200)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.isEmpty, "Kafka has the tombstone already")
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `what an operator has ended is not put back when its push is deferred`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let sent = pipeline.take()
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil))
        deferred.read()
        // It goes on for this event alone.
        pipeline.event("door")
        pipeline.end(sent[0], .unknown)
        pipeline.pass(.seconds(9))
        #expect(pipeline.counters.deferred == 1)
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `a deferral written while its push is in flight is sent after it`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let first = pipeline.take()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        #expect(pipeline.take().isEmpty, "one push to a token at a time")
        pipeline.answer(first[0], 200)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.isEmpty, "the later one is still owed")
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.map(\.endedOffset) == [1])
    }

    @Test func `an event of the same token and the deferred push are one push`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.event("door")
        pipeline.pass(.seconds(1))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == 1)
    }

    @Test func `what is deferred again goes back to its row without a record`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        for _ in 0..<3 {
            let sent = pipeline.take()
            #expect(sent.count == 1)
            pipeline.answer(sent[0], 503, .serviceUnavailable)
            pipeline.pass(.seconds(1000))
        }
        #expect(deferred.produce().deferred.isEmpty)
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `the same apns-id is used on each side of the topic`() {
        pipeline.event("door")
        let first = pipeline.take()[0]
        pipeline.pass(.seconds(20))
        pipeline.end(first, .unknown)
        #expect(deferred.produce().deferred.count == 1)
        deferred.assign()
        pipeline.pass(.seconds(60))
        let second = pipeline.take()
        #expect(second.map(\.apnsID) == [first.apnsID])
        #expect(second == [first.again(in: second[0].slot)])
    }

    @Test func `attempts go on where they stopped, to a dead letter before the tombstone`() {
        deferred.assign()
        deferred.write(
            record(
                attempts: 9,
                more: #","source":{"topic":"events-0","partition":3,"offset":9},"subject":"door""#))
        deferred.read()
        pipeline.pass(.seconds(1))
        pipeline.answer(pipeline.take()[0], 503, .serviceUnavailable)
        pipeline.pass(.seconds(1))
        let records = pipeline.takeRecords()
        #expect(records.map(\.topic) == [.deadLetters])
        #expect(records[0].value.contains("AttemptsExhausted"))
        #expect(records[0].value.contains(#""partition":3,"offset":9"#))
        pipeline.acknowledge(records)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.map(\.endedOffset) == [0])
    }

    @Test func `an expired deferred push is counted and ended`() {
        deferred.assign()
        deferred.write(record(after: .seconds(2), ttl: .seconds(1)))
        deferred.read()
        pipeline.pass(.seconds(3))
        #expect(pipeline.take().isEmpty)
        #expect(pipeline.counters.expired == 1)
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `a token that is not registered yet has half a minute to become so`() {
        deferred.assign()
        deferred.write(record(key: "production/com.example.Home.push-type.controls/02"))
        deferred.write(record(key: "production/com.example.Home.push-type.controls/03"))
        deferred.read()
        pipeline.pass(.seconds(1))
        #expect(pipeline.take().isEmpty)
        pipeline.pass(.seconds(20))
        #expect(pipeline.counters.unregistered == 0)
        pipeline.registerControl("B", [2], shows: ["x"])
        pipeline.pass(.seconds(11))
        #expect(pipeline.deliverAll().map(\.token) == [[2]])
        #expect(pipeline.counters.unregistered == 1)
        pipeline.pass(.zero)
        #expect(deferred.produce().deferred.count == 2)
    }

    @Test func `an operator's tombstone ends a wait`() {
        deferred.assign()
        deferred.write(record(after: .seconds(5)))
        deferred.write(DeferredFixture.Record(key: Self.key, value: nil))
        deferred.read()
        pipeline.pass(.seconds(9))
        #expect(pipeline.take().isEmpty)
        #expect(deferred.produce().deferred.isEmpty)
    }

    @Test func `a record whose key and payload disagree is skipped, and kills nobody`() {
        let device = "production/com.example.Home/09"
        let payload = #","payload":{"aps":{"alert":"x"}}"#
        deferred.assign()
        deferred.write(record(key: device))
        deferred.read()
        // A payload under the key of "look again", and "look again" under that of a payload.
        let bare = record(more: payload, key: device)
        #expect(deferred.refusal(of: bare)?.code == "keyMismatch")
        let empty = record(key: device + "/00000000000000ff")
        #expect(deferred.refusal(of: empty)?.code == "keyMismatch")
        #expect(pipeline.counters.deferredUnreadable == 2)
        #expect(pipeline.load.deferred == 1)
    }

    @Test func `a deferred push due only after it has expired ends when it expires`() {
        deferred.assign()
        deferred.write(record(after: .seconds(30 * 86_400), ttl: .seconds(60)))
        deferred.read()
        pipeline.pass(.seconds(61))
        #expect(pipeline.counters.expired == 1)
        #expect(deferred.produce().deferred.map(\.endedOffset) == [0])
    }

    @Test func `a lost partition's pushes are the next owner's`() {
        deferred.assign()
        deferred.write(record(after: .seconds(5)))
        deferred.read()
        deferred.revoke()
        pipeline.pass(.seconds(9))
        #expect(pipeline.take().isEmpty)
        deferred.assign()
        pipeline.pass(.seconds(1))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a push under way goes on when its partition is lost, and writes no tombstone`() {
        deferred.assign()
        deferred.write(record())
        deferred.read()
        pipeline.pass(.seconds(1))
        let sent = pipeline.take()
        deferred.revoke()
        pipeline.answer(sent[0], 200)
        pipeline.pass(.seconds(1))
        #expect(deferred.produce().deferred.isEmpty)
        #expect(pipeline.isIdle)
    }

    @Test func `deferred pushes behind an open breaker stay in their rows, but for its probes`() {
        for number in 2..<42 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
        deferred.assign()
        pipeline.event("door")
        pipeline.answer(pipeline.take()[0], 403, .invalidProviderToken)
        for number in 2..<42 as Range<UInt8> {
            let digits = Hexadecimal.encode([number])
            deferred.write(record(key: "production/com.example.Home.push-type.controls/\(digits)"))
        }
        deferred.read()
        #expect(pipeline.load.queued == 1)
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.load.queued == 1, "the breaker is open")
        pipeline.pass(.seconds(900))
        #expect(pipeline.take().count == 1, "the probe")
        #expect(pipeline.load.queued <= 32, "no more than their share of the slots")
    }

    @Test func `deferred pushes take no slot from events`() {
        let pipeline = PipelineFixture { settings in
            settings.slots = 64
            settings.immediateFanOutMax = 4
            settings.holdMax = .seconds(10)
        }
        let deferred = DeferredFixture(pipeline)
        for number in 0..<200 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
        deferred.assign()
        for number in 0..<200 as Range<UInt8> {
            let digits = Hexadecimal.encode([number])
            deferred.write(record(key: "production/com.example.Home.push-type.controls/\(digits)"))
        }
        deferred.read()
        pipeline.pass(.seconds(1))
        #expect(pipeline.load.queued == 6, "a quarter of their share is left to another pool")
        var subject = 199
        while pipeline.pipeline.hasRoomForEvents {
            pipeline.event("s\(subject)")
            subject -= 1
        }
        #expect(pipeline.load.queued == 64 - 4 - 2)
    }
}

extension SentPush {
    /// The same push in another slot.
    func again(in slot: PushSlot) -> SentPush {
        var other = self
        other.slot = slot
        return other
    }
}
