// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import Worker

@Suite struct `The planner's stop` {
    @Test
    func
        `the planner's stop lasts until the grace period of every event is over, unless configured otherwise`()
        throws
    {
        for (text, isEnough) in [
            ("", true), ("index: {registrationGrace: 19s}", true),
            ("index: {registrationGrace: 20s}", false),
            ("delivery: {shutdownTimeout: 7s}", false), ("delivery: {shutdownTimeout: 8s}", true),
            ("{index: {registrationGrace: 60s}, delivery: {shutdownTimeout: 70s}}", true),
        ] {
            let plan = WorkerPlan(try configuration(text))
            #expect(plan.stopsInTime == isEnough, "\(text)")
        }
    }
}
