// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `Settings that change while pushes are under way` {
    let token: [UInt8] = [1, 2, 3]

    private func adopt(
        _ fixture: PipelineFixture, bindings: [TopicBinding] = [.standard],
        change: (inout PipelineSettings) -> Void
    ) throws {
        var settings = fixture.pipeline.state.settings
        change(&settings)
        try fixture.pipeline.adopt(settings.live, bindings: bindings)
    }

    @Test func `fewer attempts hold for a push that waits for its next`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 500, .internalServerError)
        try adopt(fixture) { $0.attemptsMax = 2 }
        fixture.pass(.seconds(2))
        fixture.answer(fixture.take()[0], 500, .internalServerError)
        fixture.pass(.seconds(1))
        #expect(fixture.takeRecords().map(\.topic) == [.deadLetters])
    }

    @Test func `a shorter life holds for events read from then on`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", [4, 5, 6], shows: ["window"])
        fixture.event("door")
        try adopt(fixture) { $0.events.changeTTL = .seconds(5) }
        fixture.event("window")
        fixture.pass(.seconds(6))
        #expect(fixture.take().map(\.token) == [token])
        #expect(fixture.pipeline.counters.expired == 1)
    }

    @Test func `a topic's binding is read by its new rules`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"], kind: "door")
        var binding = TopicBinding.standard
        binding.kinds = ["lamp"]
        try adopt(fixture, bindings: [binding]) { _ in }
        fixture.event("door")
        #expect(fixture.take().isEmpty)
    }

    @Test func `what memory was taken for stays as it is`() throws {
        let fixture = PipelineFixture()
        try adopt(fixture) {
            $0.slots = 10
            $0.registrationGrace = .zero
            $0.holdMax = .seconds(2)
        }
        #expect(fixture.pipeline.state.settings.slots == 256)
        #expect(fixture.pipeline.state.settings.registrationGrace == .seconds(2))
        #expect(fixture.pipeline.state.settings.holdMax == .seconds(10_000_000))
    }
}
