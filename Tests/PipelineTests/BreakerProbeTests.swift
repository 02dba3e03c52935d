// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Probes of an open breaker` {
    @Test(
        arguments: [
            (403, APNSReason.invalidProviderToken), (400, .badTopic), (503, .serviceUnavailable),
        ] as [(UInt16, APNSReason)])
    func `probes of an open breaker go out ever more rarely while they are refused`(
        status: UInt16, reason: APNSReason
    ) {
        let fixture = PipelineFixture { settings in
            settings.breakerBackoff = Backoff(least: .seconds(1), most: .seconds(900))
            settings.retryBackoff = Backoff(least: .milliseconds(1), most: .milliseconds(1))
            settings.attemptsMax = 1000
        }
        // One token alone parks nothing.
        for token in 1...2 as ClosedRange<UInt8> {
            fixture.registerControl("I\(token)", [token], shows: ["door"])
        }
        fixture.event("door")
        // Half of fifty 503s park a pool; each of the others does by itself.
        for _ in 0..<(status == 503 ? 60 : 10) {
            fixture.pass(.seconds(1000))
            for push in fixture.take() { fixture.answer(push, status, reason) }
        }
        fixture.pass(.seconds(20))
        #expect(fixture.take().isEmpty)
    }

    @Test func `probes of an open breaker that nothing answers keep it open for longer too`() {
        let fixture = PipelineFixture { settings in
            settings.breakerBackoff = Backoff(least: .seconds(600), most: .seconds(600))
        }
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        fixture.pass(.seconds(600))
        fixture.end(fixture.take()[0], .unknown)
        // The push itself is ready by now.
        fixture.pass(.seconds(31))
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(600))
        #expect(fixture.take().count == 1)
    }
}
