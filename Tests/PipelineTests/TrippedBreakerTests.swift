// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Tripped breakers` {
    private let token: [UInt8] = [1, 2, 3]

    private func afterAnswer(_ status: UInt16, _ reason: APNSReason) -> PipelineFixture {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        #expect(fixture.pipeline.trippedBreakers(now: fixture.now).isEmpty)
        fixture.answer(fixture.take()[0], status, reason)
        return fixture
    }

    @Test func `tripped breakers are named with what APNs said, until a probe succeeds`() throws {
        let fixture = afterAnswer(403, .invalidProviderToken)
        let tripped = fixture.pipeline.trippedBreakers(now: fixture.now)
        let breaker = try #require(tripped.first)
        #expect(tripped.count == 1)
        #expect(breaker.name == "credential team in production")
        #expect(breaker.cause == .credentialRefused(.invalidProviderToken))
        let wait = try #require(breaker.probeIn)
        #expect(wait > .zero && wait <= .seconds(1))
        fixture.pass(wait)
        #expect(fixture.pipeline.trippedBreakers(now: fixture.now).first?.probeIn == .zero)
        let probe = fixture.take()[0]
        let out = fixture.pipeline.trippedBreakers(now: fixture.now).first
        #expect(out != nil && out?.probeIn == nil)
        fixture.answer(probe, 200)
        #expect(fixture.pipeline.trippedBreakers(now: fixture.now).isEmpty)
    }

    @Test func `a tripped breaker may be that of one APNs topic`() throws {
        let tripped = { (fixture: PipelineFixture) in
            fixture.pipeline.trippedBreakers(now: fixture.now)
        }
        let breaker = try #require(tripped(afterAnswer(400, .topicDisallowed)).first)
        #expect(breaker.name == "APNs topic com.example.Home.push-type.controls in production")
        #expect(breaker.cause == .topicRefused(.topicDisallowed))
        #expect(breaker.app == "com.example.Home")
    }
}
