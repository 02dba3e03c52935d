// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Who asks for most pushes.
@Suite struct `The demand for pushes` {
    private let fixture = PipelineFixture { $0.slots = 16_384 }

    init() { fixture.checksEachCall = false }

    private var demand: PushDemand { fixture.pipeline.demand(now: fixture.now) }

    private func register(_ count: Int, show subject: String) {
        fixture.register(
            "I",
            (0..<count).map {
                .control([UInt8($0 >> 8), UInt8($0 & 255)], shows: [subject], kind: "door")
            })
    }

    private func emit(_ subject: String, times: Int) {
        for _ in 0..<times {
            fixture.event(subject)
            while !fixture.deliverAll().isEmpty {}
        }
    }

    @Test func `a subject of many tokens is counted by its size, however few its events`() {
        register(500, show: "hot")
        fixture.registerControl("quiet", [9, 9, 9], shows: ["quiet"])
        emit("quiet", times: 20)
        emit("hot", times: 4)
        let demand = self.demand
        #expect(demand.subjects.first?.name == "hot")
        #expect(demand.subjects.first?.audience == 500)
        #expect(abs((demand.subjects.first?.pushes ?? 0) - 2000) <= DemandTally.stride)
        #expect(abs(demand.pushes - 2020) <= DemandTally.stride)
        #expect(demand.topics.map { $0.name } == ["events-0"])
        #expect(demand.apps.map { $0.pushes } == [demand.pushes])
    }

    @Test func `a subject of one token is found by how often it comes`() {
        for number in 0..<30 {
            fixture.registerControl("I\(number)", [UInt8(number), 1], shows: ["door-\(number)"])
        }
        for number in 0..<30 { emit("door-\(number)", times: number == 17 ? 2000 : 20) }
        let demand = self.demand
        #expect(demand.subjects.first?.name == "door-17")
        #expect(abs((demand.subjects.first?.pushes ?? 0) - 2000) <= 2 * DemandTally.stride)
    }

    @Test func `an event of a whole kind is named by its kind, beside a subject of that name`() {
        let fixture = PipelineFixture {
            $0.slots = 16_384
            $0.events.allowKindWide = true
        }
        fixture.checksEachCall = false
        fixture.register(
            "I",
            (0..<500).map {
                .control([UInt8($0 >> 8), UInt8($0 & 255)], shows: ["door"], kind: "door")
            })
        fixture.event("door")
        while !fixture.deliverAll().isEmpty {}
        fixture.event(nil, #"{"kinds":["door"]}"#)
        while !fixture.deliverAll().isEmpty {}
        let demand = fixture.pipeline.demand(now: fixture.now)
        #expect(demand.subjects.map(\.name) == ["door", "door"])
        #expect(Set(demand.subjects.map(\.unit)) == ["subject", "kind"])
        #expect(demand.subjects.allSatisfy { $0.audience == 500 })
    }

    @Test func `what was asked for more than two minutes ago is forgotten`() {
        register(500, show: "hot")
        emit("hot", times: 1)
        fixture.pass(.seconds(59))
        #expect(demand.pushes > 0)
        fixture.pass(.seconds(2))
        emit("hot", times: 1)
        #expect(abs(demand.pushes - 1000) <= DemandTally.stride)
        #expect(demand.over >= .seconds(61))
        fixture.pass(.seconds(200))
        #expect(demand.pushes == 0 && demand.subjects.isEmpty)
    }
}
