// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Tokens that always get a 500, beside others that never do.
@Suite struct `The fault of a token whose pushes always get a 500` {
    /// An owner of `deferred`, devices 1 to 50, and devices 101, 102, … that get a 500.
    private final class World {
        let owner: DeferredOwner
        var accepted: [UInt8: Int] = [:]
        var refused: [UInt8: Int] = [:]
        /// All of APNs answers 500.
        var isDown = false
        var isTripped = false
        var pipeline: PipelineFixture { owner.pipeline }

        init(ill: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }) {
            owner = DeferredOwner(controls: 1) { settings in
                settings.breakerBackoff = Backoff(least: .seconds(1), most: .seconds(900))
                settings.attemptsMax = 1000
                adjust(&settings)
            }
            for number in 1...50 as ClosedRange<UInt8> {
                pipeline.register("G\(number)", [.device([number], shows: ["g\(number)"])])
            }
            for number in 1...UInt8(ill) {
                pipeline.register("D\(number)", [.device([100 + number], shows: ["n\(number)"])])
            }
        }

        func alerts(_ count: Int, to device: Int = 1) {
            for _ in 0..<count { alert("n\(device)") }
        }

        func alert(_ subject: String) {
            pipeline.event(subject, #"{"payload":{"aps":{"alert":"look"}}}"#)
        }

        /// A tenth of a second: what was handed over before is answered, what is ready handed over.
        func step() {
            pipeline.pass(.milliseconds(100))
            for push in pipeline.take() {
                if isDown || push.token[0] > 100 {
                    refused[push.token[0], default: 0] += 1
                    pipeline.answer(push, 500, .internalServerError)
                } else {
                    accepted[push.token[0], default: 0] += 1
                    pipeline.answer(push, 200)
                }
            }
            isTripped = !pipeline.pipeline.trippedBreakers(now: pipeline.now).isEmpty
            owner.deferred.produce()
            owner.deferred.read()
        }

        /// Two events a second.
        /// - Returns: the longest time that one of them has waited for its acceptance.
        func goodEvents(seconds: Int, devices: Int) -> Duration {
            var slowest = Duration.zero
            for number in 0..<2 * seconds {
                let device = UInt8(1 + number % devices)
                let before = accepted[device, default: 0]
                alert("g\(device)")
                var steps = 0
                repeat {
                    step()
                    steps += 1
                } while steps < 5 || (accepted[device, default: 0] == before && steps < 3000)
                slowest = max(slowest, .milliseconds(100 * steps))
            }
            return slowest
        }
    }

    @Test(arguments: [1, 2, 50])
    func `a token with endless 500s keeps no other token waiting`(devices: Int) {
        let world = World()
        world.alerts(60)
        let slowest = world.goodEvents(seconds: 45, devices: devices)
        #expect(world.accepted.values.reduce(0, +) == 90)
        #expect(slowest <= .milliseconds(500), "each at once")
        #expect(world.pipeline.counters.poolBreakersOpened == 0)
    }

    @Test func `a token with endless 500s keeps no other waiting though nothing was sent for long`()
    {
        let world = World()
        world.alerts(60)
        for _ in 0..<600 { world.step() }
        #expect(world.goodEvents(seconds: 10, devices: 1) <= .milliseconds(500))
    }

    @Test func `a token with endless 500s is tried ever more rarely, by one push at a time`() {
        let world = World()
        world.alerts(60)
        _ = world.goodEvents(seconds: 30, devices: 3)
        world.refused = [:]
        _ = world.goodEvents(seconds: 150, devices: 3)
        #expect((1...20).contains(world.refused[101, default: 0]), "\(world.refused)")
    }

    @Test func `a token with endless 500s gets all its pushes when it has recovered`() {
        let world = World()
        world.alerts(60)
        _ = world.goodEvents(seconds: 30, devices: 3)
        var delivered = 0
        for _ in 0..<20_000 where delivered < 60 {
            world.pipeline.pass(.milliseconds(100))
            for push in world.pipeline.take() {
                world.pipeline.answer(push, 200)
                delivered += 1
            }
            world.owner.deferred.produce()
            world.owner.deferred.read()
        }
        #expect(delivered == 60)
    }

    @Test func `a token with endless 500s is asked for while any pool has one, and not after`()
        throws
    {
        let fixture = PipelineFixture { $0.registrationGrace = .zero }
        let environments: [PushEnvironment] = [.production, .development]
        for (number, environment) in environments.enumerated() {
            fixture.registerControl(
                "\(number)", [UInt8(number + 1)], shows: ["s"], environment: environment)
        }
        func answer(pool: UInt16, _ status: UInt16) throws -> Bool {
            fixture.answer(try #require(fixture.take(pool: pool).first), status)
            return fixture.pipeline.state.breakers.hasTokenFaults
        }
        fixture.event("s")
        #expect(try answer(pool: 0, 500))
        #expect(try answer(pool: 1, 500))
        fixture.pass(.seconds(100))
        #expect(try answer(pool: 0, 200))
        #expect(try !answer(pool: 1, 200))
    }

    /// Three tokens, that alone have anything to send, park the pool.
    @Test func `a token with endless 500s does not keep a parked pool's probes for itself`() {
        let world = World(ill: 3)
        for device in 1...3 { world.alerts(60, to: device) }
        for _ in 0..<600 { world.step() }
        #expect(world.isTripped)
        let probed = world.refused.values.reduce(0, +)
        world.alert("g1")
        for _ in 0..<20_000 where world.accepted.isEmpty { world.step() }
        #expect(world.refused.values.reduce(0, +) - probed <= 1, "it comes before them")
        // The first of them meets the slow start.
        #expect(world.goodEvents(seconds: 20, devices: 2) <= .seconds(1))
        #expect(!world.isTripped)
    }

    @Test func `a token with endless 500s parks the pool with the others when all of APNs fails`() {
        let world = World()
        world.isDown = true
        for device in 1...50 { world.alert("g\(device)") }
        for _ in 0..<100 { world.step() }
        #expect(world.isTripped)
        let refused = world.refused
        for _ in 0..<600 { world.step() }
        let probed = world.refused.filter { $0.value > refused[$0.key, default: 0] }
        #expect(probed.count >= 3, "the probes are of other tokens")
        world.isDown = false
        for _ in 0..<20_000 where world.accepted.count < 50 { world.step() }
        #expect(world.accepted.count == 50)
    }
}
