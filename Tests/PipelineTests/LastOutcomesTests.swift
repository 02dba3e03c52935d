// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline

@Suite struct `The last outcomes` {
    private let token: [UInt8] = [1, 2, 3]

    @Test func `the last outcomes of a token have time, answer, apns-id and event`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        let offset = fixture.event("door")
        let first = fixture.take()[0]
        fixture.answer(first, 503, .serviceUnavailable)
        fixture.pass(.seconds(10))
        fixture.answer(fixture.take()[0], 200)
        let outcomes = fixture.explain(subject: "door")[0].outcomes
        #expect(outcomes.map(\.status) == [200, 503])
        #expect(outcomes.map(\.reason) == [.none, .serviceUnavailable])
        #expect(outcomes[0].at == fixture.now.wall)
        #expect(outcomes[1].at == fixture.now.wall + .seconds(-10))
        #expect(outcomes.allSatisfy { $0.apnsID == first.apnsID })
        #expect(outcomes.map(\.type) == [nil, .controls] && outcomes[0].event == nil)
        let event = try #require(outcomes[1].event)
        #expect(event.topic == "events-0" && event.partition == 0 && event.offset == offset)
    }

    @Test func `the last outcomes tell of pushes that were lost on the way or expired`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door", #"{"ttlSeconds":5}"#)
        fixture.end(fixture.take()[0], .unknown)
        fixture.pass(.seconds(6))
        #expect(fixture.take().isEmpty && fixture.counters.expired == 1)
        let outcomes = fixture.explain(subject: "door")[0].outcomes
        #expect(outcomes.map(\.kind) == [.expired, .unknown])
    }

    @Test func `the last outcomes of a token are not those of one that had its row before`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        _ = fixture.deliverAll()
        fixture.unregister("A")
        fixture.registerControl("B", [4, 5, 6], shows: ["door"])
        #expect(fixture.explain(subject: "door").map(\.outcomes.count) == [0])
        fixture.event("door")
        _ = fixture.deliverAll()
        #expect(fixture.explain(subject: "door").map(\.outcomes.count) == [1])
    }

    @Test func `the last outcomes of tokens of any length are told apart`() {
        let fixture = PipelineFixture()
        let tokens: [[UInt8]] = [
            [1], [2, 2], [3, 2, 3, 4, 5, 6, 7], [4, 2, 3, 4, 5, 6, 7, 8],
            Array(repeating: 9, count: PushSlab.inlineTokenBytes + 1),
        ]
        for (number, token) in tokens.enumerated() {
            fixture.registerControl("I\(number)", token, shows: ["s\(number)"])
        }
        for number in tokens.indices {
            for _ in 0...number {
                fixture.event("s\(number)")
                _ = fixture.deliverAll()
            }
        }
        let counts = tokens.indices.map { fixture.explain(subject: "s\($0)")[0].outcomes.count }
        #expect(counts == [1, 2, 3, 4, 5])
    }

    @Test func `the last outcomes of the same bytes under two APNs topics are told apart`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("A", token, shows: ["hall"], environment: .development)
        fixture.register("B", [.device(token, shows: ["roof"])])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 200)
        fixture.event("hall")
        fixture.answer(fixture.take(pool: 1)[0], 503, .serviceUnavailable)
        fixture.pass(.seconds(10))
        #expect(fixture.deliverAll(pool: 1).count == 1)
        fixture.event("roof", #"{"payload":{"aps":{"alert":"a"}},"ttlSeconds":1}"#)
        fixture.pass(.seconds(2))
        #expect(fixture.take().isEmpty)
        func outcomes(_ subject: String) -> [ExplainedOutcome] {
            fixture.explain(subject: subject)[0].outcomes
        }
        #expect(outcomes("door").map(\.status) == [200])
        #expect(outcomes("door").map(\.at) == [fixture.now.wall + .seconds(-12)])
        #expect(outcomes("hall").map(\.status) == [200, 503])
        #expect(outcomes("roof").map(\.kind) == [.expired])
    }

    @Test func `the last outcomes take the memory that the metrics say`() {
        let memory = PipelineFixture().pipeline.memory
        let bytes = memory.first { $0.part == "recent_outcomes" }?.bytes
        let unsuccessful = RecentOutcomes.failuresMax + RecentOutcomes.dropsMax
        #expect(bytes == RecentOutcomes.acceptancesMax * 32 + unsuccessful * 56, "whole pages all")
        #expect(memory.first { $0.part == "correlations" }?.bytes == 0, "nothing is known yet")
    }

    @Test func `the last outcomes keep a failure beyond any number of acceptances`() {
        let fixture = PipelineFixture { $0.slots = 2048 }
        fixture.checksEachCall = false
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 413, .payloadTooLarge)
        for number in 0..<1024 {
            fixture.registerControl(
                "I\(number)", [UInt8(number & 255), UInt8(number >> 8)], shows: ["s\(number)"])
        }
        for _ in 0..<(RecentOutcomes.acceptancesMax / 1024 + 1) {
            for number in 0..<1024 { fixture.event("s\(number)") }
            #expect(fixture.deliverAll().count == 1024)
            _ = fixture.takeRecords()
        }
        #expect(fixture.explain(subject: "door")[0].outcomes.map(\.status) == [413])
        #expect(fixture.explain(subject: "s7")[0].outcomes.count == 10)
    }
}
