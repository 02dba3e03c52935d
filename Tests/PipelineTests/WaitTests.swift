// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// While a breaker is open for long, and what is told of it afterwards.
@Suite struct `A wait of minutes` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.breakerBackoff = Backoff(least: .seconds(600), most: .seconds(600))
        }
        pipeline.registerControl("A", [1], shows: ["door", "lamp"])
        pipeline.registerControl("B", [2], shows: ["hall", "lamp"])
        deferred = DeferredFixture(pipeline)
    }

    /// For a minute at least.
    private func openBreaker() {
        pipeline.event("door")
        pipeline.answer(pipeline.take()[0], 403, .expiredProviderToken)
    }

    /// Another worker's record for this token.
    private func write(_ token: String, after delay: Duration = .zero, ttl: Duration) {
        let (notBefore, expiresAt) = (pipeline.now.wall + delay, pipeline.now.wall + ttl)
        deferred.write(
            DeferredFixture.Record(
                key: key(token),
                value: #"{"v":1,"notBefore":"\#(notBefore.rfc3339)","#
                    + #""expiresAt":"\#(expiresAt.rfc3339)","class":"control","attempts":0}"#))
    }

    private func key(_ token: String) -> String {
        "production/com.example.Home.push-type.controls/\(token)"
    }

    private func instant(_ name: String, in text: String) throws -> String {
        let start = try #require(text.firstRange(of: #""\#(name)":""#)).upperBound
        return String(text[start...].prefix { $0 != "\"" })
    }

    @Test func `a wait of minutes is written down to its end with a push that it defers`() throws {
        openBreaker()
        pipeline.pass(.seconds(9))
        let record = try #require(deferred.produce().deferred.first)
        let notBefore = try instant("notBefore", in: record.value!)
        #expect(notBefore > (pipeline.now.wall + .seconds(40)).rfc3339)
    }

    @Test func `a wait of minutes ends a deferred push that expires in it`() {
        deferred.assign()
        openBreaker()
        write("02", ttl: .seconds(30))
        deferred.read()
        pipeline.pass(.seconds(20))
        #expect(pipeline.counters.expired == 0)
        pipeline.pass(.seconds(20))
        pipeline.pass(.seconds(1))
        #expect(pipeline.take().isEmpty, "the breaker is open")
        #expect(pipeline.counters.expired == 1)
        #expect(deferred.produce().deferred.contains { $0.key == key("02") && $0.value == nil })
    }

    @Test func `a wait of half a minute is granted to the registration of a deferred push`() {
        deferred.assign()
        write("03", ttl: .seconds(3600))
        deferred.read()
        for _ in 0..<25 { pipeline.pass(.seconds(1)) }
        #expect(pipeline.counters.unregistered == 0)
        pipeline.registerControl("C", [3], shows: ["yard"])
        pipeline.pass(.seconds(10))
        #expect(pipeline.deliverAll().map(\.token) == [[3]])
    }

    @Test func `a wait of minutes is rewritten when a replay ends with a tombstone that hides it`()
    {
        for _ in 0..<2 { write("02", after: .seconds(600), ttl: .seconds(3600)) }
        deferred.write(DeferredFixture.Record(key: key("02"), value: nil, endedOffset: 0))
        deferred.assign()
        let written = deferred.produce().deferred
        #expect(written.map(\.key) == [key("02")])
        #expect(written.first?.value != nil && written.first?.endedOffset == 1)
    }

    @Test func `a wait of minutes has a dead letter say the first and last time and most attempts`()
        throws
    {
        pipeline.event("lamp")
        let began = pipeline.now.wall
        let pushes = pipeline.take()
        pipeline.answer(pushes[0], 503, .serviceUnavailable)
        pipeline.pass(.seconds(2))
        pipeline.answer(pipeline.take()[0], 400, .badMessageId)
        pipeline.pass(.milliseconds(100))
        pipeline.answer(pushes[1], 400, .badMessageId)
        let ended = pipeline.now.wall
        pipeline.pass(.seconds(1))
        let letters = deferred.produce().others.filter { $0.topic == .deadLetters }
        #expect(letters.count == 1)
        let letter = try #require(letters.first).value
        #expect(letter.contains(#""attempts":2"#))
        #expect(try instant("firstAt", in: letter) == began.rfc3339)
        #expect(try instant("lastAt", in: letter) == ended.rfc3339)
    }
}
