// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

extension PipelineFixture {
    /// An operator restricts something, or lifts that (nil), and the worker follows.
    func restrict(
        _ scope: Restriction.Scope, _ action: Restriction.Action?, for duration: Duration? = nil
    ) {
        let value = action.map { action in
            var restriction = Restriction(action, by: "anna", at: now.wall)
            restriction.until = duration.map { now.wall + $0 }
            return RestrictionEncoder.value(restriction)
        }
        let problem = withBytes(RecordKey.restriction(scope)) { key in
            withBytes(value) { pipeline.restrictionRecord(key: key, value: $0) }
        }
        #expect(problem == nil)
        pass(.milliseconds(1))
    }
}
