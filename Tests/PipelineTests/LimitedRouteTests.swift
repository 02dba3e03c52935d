// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A limit is a bulkhead as a breaker is: what waits for it takes nobody else's room.
@Suite struct `A limited route` {
    private static let slots = 1024

    /// A fixture with as many controls, of which one is sent a second, and a widget.
    private func fixture(controls: Int) -> (PipelineFixture, DeferredFixture) {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.slots = Self.slots
            settings.holdMax = .seconds(10)
        }
        fixture.checksEachCall = false
        for number in 0..<controls {
            let token = [UInt8(number >> 8), UInt8(number & 255)]
            fixture.registerControl("I\(number)", token, shows: ["all"])
        }
        fixture.register("W", [.widget([200], shows: ["w"])])
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        let scope = Restriction.Scope.pushes(app: nil, tokenClass: .control)
        let value = RestrictionEncoder.value(
            Restriction(.limit(perSecond: 1), by: "anna", at: fixture.now.wall))
        RecordKey.restriction(scope).withUnsafeBytes { key in
            value.withUnsafeBytes {
                #expect(fixture.pipeline.restrictionRecord(key: key, value: $0) == nil)
            }
        }
        fixture.pass(.milliseconds(1))
        return (fixture, deferred)
    }

    @Test func `what waits for a limit leaves the slots to others`() {
        let (fixture, deferred) = fixture(controls: 600)
        fixture.event("all")
        for _ in 0..<10 { fixture.pass(.milliseconds(100)) }
        #expect(fixture.pipeline.state.pushes.queuedCount <= Self.slots / 16)
        #expect(deferred.produce().deferred.count >= 500)
        fixture.event("w")
        #expect(fixture.take().contains { $0.token == [200] })
    }

    @Test func `rows that wait for a limit leave the slots of rows to others`() {
        let (fixture, deferred) = fixture(controls: 600)
        fixture.event("all")
        for _ in 0..<30 {
            fixture.pass(.seconds(1))
            _ = deferred.produce()
            deferred.read()
            _ = fixture.deliverAll()
        }
        #expect(fixture.load.deferred > 500)
        #expect(fixture.pipeline.state.pushes.deferredShareCount <= HoldWatch.probesKept)
    }

    @Test func `a drain defers what waits for a limit`() {
        let (fixture, deferred) = fixture(controls: 40)
        fixture.event("all")
        fixture.pass(.milliseconds(100))
        fixture.pipeline.drain = .until(fixture.now.monotonic + .seconds(2))
        fixture.pass(.milliseconds(100))
        #expect(deferred.produce().deferred.count >= 39)
        #expect(fixture.load.claims == 0)
    }
}
