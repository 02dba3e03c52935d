// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Planning
internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Pipeline

/// Events with conditions are remembered for the grace period.
@Suite struct `The memory of recent events` {
    /// Each record of topic 0 is about 16 subjects, for controls alone.
    private func fixture(
        _ adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        var flood = TopicBinding(
            decode: .json, app: PipelineFixture.app, classes: TokenClassSet(.control))
        flood.subjects = (0..<16).map { try! SubjectTemplate("flood-{/id}-\($0)") }
        return PipelineFixture(bindings: [flood, .standard]) { settings in
            settings.events.allowKindWide = true
            adjust(&settings)
        }
    }

    @Test func `an event of many subjects is remembered once, and owed for each of them`() {
        let fixture = fixture()
        fixture.event("k", #"{"id":1}"#)
        let count = fixture.pipeline.late.recentEvents.count
        let bytes = fixture.pipeline.late.bytes
        #expect(count == 1 && bytes < 16 * 200, "\(bytes)")
        for number in 0..<16 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["flood-1-\(number)"])
            fixture.register("D\(number)", [.device([99, number], shows: ["flood-1-\(number)"])])
        }
        #expect(fixture.deliverAll().map(\.token) == (0..<16).map { [$0] })
        fixture.pass(.seconds(3))
        let left = fixture.pipeline.late.bytes
        #expect(left == 0 && fixture.isIdle)
    }

    @Test func `each subject of remembered events has the expiry of its own events`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"kinds":["lamp"],"ttlSeconds":60}"#, binding: 1)
        fixture.event("t", #"{"v":1,"kinds":["lamp"],"ttlSeconds":2}"#, binding: 1)
        fixture.event("s", #"{"v":1,"kinds":["lamp"],"ttlSeconds":2}"#, binding: 1)
        fixture.pass(.milliseconds(1500))
        fixture.registerControl("A", [1], shows: ["s"], kind: "lamp")
        fixture.registerControl("B", [2], shows: ["t"], kind: "lamp")
        fixture.pass(.seconds(1))
        #expect(fixture.take().map(\.token) == [[1]])
    }

    @Test func `an event of several lists has one body`() {
        let fixture = fixture()
        for (number, kind) in ["lamp", "lock", "bell"].enumerated() {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["x"], kind: kind)
        }
        fixture.event(
            nil,
            #"{"v":1,"app":"com.example.Home","kinds":["lamp","lock","bell"],"#
                + #""payload":{"aps":{"content-available":1}}}"#,
            binding: 1)
        let count = fixture.pipeline.book.pushes.bodies.count
        #expect(count == 1)
    }
}
