// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import Worker

@Suite struct `The planner's stop` {
    @Test
    func
        `the planner's stop leaves APNs time to answer, unless configured otherwise`()
        throws
    {
        for (text, isEnough) in [
            ("", true), ("index: {registrationGrace: 60s}", true),
            ("delivery: {shutdownTimeout: 6999ms}", false),
            ("delivery: {shutdownTimeout: 7s}", true),
        ] {
            let plan = WorkerPlan(try configuration(text))
            #expect(plan.stopsInTime == isEnough, "\(text)")
        }
    }
}
