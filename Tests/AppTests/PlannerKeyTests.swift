// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

@Suite struct `The planner and a new signing key` {
    @Test
    func `a planner that hears of a new signing key tries at once what the old one kept waiting`()
        throws
    {
        let planner = try PlannerLoopFixture()
        let now = planner.now
        let route = RouteID(rawValue: 0)
        let pool = planner.loop.pipeline.state.breakers.pool(of: route)
        planner.loop.pipeline.state.breakers.credentialRefused(
            route, .invalidProviderToken, now: now.monotonic)
        func probeIn() throws -> Duration {
            try #require(planner.loop.pipeline.trippedBreakers(now: now).first?.probeIn)
        }
        _ = planner.loop.turn(now: now)
        #expect(try probeIn() > .zero)
        planner.control.keyChanged(of: pool)
        _ = planner.loop.turn(now: now)
        #expect(try probeIn() <= .zero)
        #expect(planner.control.takeRekeyed().isEmpty, "it is news once")
    }
}
