// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What `explain` knows of what operators pause, drop and limit.
@Suite struct `What explain says of restrictions` {
    private static let home = Restriction.Scope.pushes(app: PipelineFixture.app, tokenClass: nil)
    private static let controls = Restriction.Scope.pushes(
        app: PipelineFixture.app, tokenClass: .control)
    private static let allControls = Restriction.Scope.pushes(app: nil, tokenClass: .control)
    private static let door = Restriction.Scope.subject(
        Array("door".utf8), app: PipelineFixture.app)
    private static let topic = Restriction.Scope.topic("events-0")
    private let fixture = PipelineFixture()

    init() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.register("B", [.widget([2], shows: ["door"])])
    }

    private func scopes(ofToken number: UInt8) -> [Restriction.Scope] {
        fixture.explain(token: [number]).flatMap(\.restrictions).map(\.scope)
    }

    // MARK: Tokens

    @Test func `a token has the restrictions of its pushes and of what it shows, and no others`() {
        fixture.restrict(Self.home, .pause)
        fixture.restrict(Self.allControls, .drop)
        fixture.restrict(Self.door, .drop)
        fixture.restrict(.subject(Array("roof".utf8), app: PipelineFixture.app), .drop)
        fixture.restrict(.pushes(app: "com.example.Other", tokenClass: nil), .pause)
        #expect(scopes(ofToken: 1) == [Self.home, Self.allControls, Self.door])
        #expect(scopes(ofToken: 2) == [Self.home, Self.door])
        fixture.restrict(Self.home, nil)
        fixture.restrict(Self.allControls, nil)
        #expect(fixture.explain(token: [2]).flatMap(\.restrictions).map(\.endedAt) == [nil])
        #expect(scopes(ofToken: 2) == [Self.door])
    }

    @Test func `of limits the narrowest is told, and none beside a pause`() {
        fixture.restrict(Self.home, .limit(perSecond: 5))
        fixture.restrict(Self.controls, .limit(perSecond: 10))
        #expect(scopes(ofToken: 1) == [Self.controls])
        #expect(scopes(ofToken: 2) == [Self.home])
        fixture.restrict(Self.allControls, .pause)
        #expect(scopes(ofToken: 1) == [Self.allControls])
    }

    @Test func `those of a topic are told once, whatever is found`() {
        fixture.restrict(Self.topic, .pause)
        fixture.restrict(.topic("elsewhere"), .pause)
        let explanation = fixture.explain(.subject(Array("door".utf8), app: nil))
        #expect(explanation.restrictions.map(\.scope) == [Self.topic])
        #expect(explanation.tokens.flatMap(\.restrictions).isEmpty)
    }

    @Test func `a push that was dropped names the drop, also once it is lifted`() throws {
        let offset = fixture.event("door")
        fixture.restrict(Self.home, .drop)
        #expect(fixture.deliverAll().isEmpty)
        let droppedAt = fixture.now.wall
        fixture.pass(.seconds(5))
        fixture.restrict(Self.home, nil)
        fixture.pass(.seconds(60))
        let token = try #require(fixture.explain(token: [1]).first)
        let outcome = try #require(token.outcomes.first)
        #expect(token.outcomes.count == 1 && outcome.kind == .dropped && outcome.at == droppedAt)
        #expect(outcome.type == .controls && outcome.event?.offset == offset)
        let drop = try #require(outcome.drop)
        #expect(drop.scope == Self.home && drop.restriction.by == "anna")
        #expect(drop.endedAt == droppedAt + .milliseconds(5001))
        #expect(token.restrictions == [drop])
        // Another drop is not taken for it.
        fixture.restrict(Self.controls, .drop)
        #expect(fixture.explain(token: [1]).first?.outcomes.first?.drop == drop)
    }

    @Test func `drops keep no other outcome from being remembered`() {
        fixture.checksEachCall = false
        fixture.event("door")
        for push in fixture.take() { fixture.answer(push, 413, .payloadTooLarge) }
        fixture.register("C", [.widget([3], shows: ["roof"])])
        fixture.restrict(Self.home, .drop)
        for _ in 0...RecentOutcomes.failuresMax {
            fixture.event("roof")
            _ = fixture.deliverAll()
        }
        #expect(fixture.explain(token: [1]).first?.outcomes.map(\.status) == [413])
        #expect(fixture.explain(token: [3]).first?.outcomes.count == 10)
    }

    @Test func `so many drops that are over are remembered, and all that are in force`() {
        var history = DropHistory()
        var inForce = [
            Self.home: Restriction(.drop, by: "anna", at: WallTime(milliseconds: 0))
        ]
        history.follow(inForce, now: WallTime(milliseconds: 1))
        for number in 0..<300 {
            let scope = Restriction.Scope.topic("\(number)")
            inForce[scope] = Restriction(.drop, by: "anna", at: WallTime(milliseconds: 0))
            history.follow(inForce, now: WallTime(milliseconds: Int64(number)))
            inForce[scope] = nil
        }
        history.follow(inForce, now: WallTime(milliseconds: 300))
        #expect(history.entries.count == DropHistory.endedMax + 1)
        #expect(history.entries.first?.scope == Self.home && history.entries.first?.endedAt == nil)
        #expect(history.entries.last?.scope == .topic("299"))
        #expect(history.drop(of: [.topic("5")], at: WallTime(milliseconds: 5)) == nil)
    }

    // MARK: Records

    @Test func `a record whose pushes are dropped reaches nobody, and says so`() {
        fixture.restrict(Self.allControls, .drop)
        let explanation = fixture.trial("door")
        #expect(explanation.counts == [.passedOver(.dropped): 1, .push(.widgets): 1])
        #expect(explanation.restrictions.map(\.scope) == [Self.allControls])
    }

    @Test(arguments: [door, topic])
    func `a record of a subject or a topic that is dropped reaches nobody`(
        scope: Restriction.Scope
    ) {
        fixture.restrict(scope, .drop)
        let explanation = fixture.trial("door")
        #expect(explanation.counts == [.passedOver(.dropped): 2])
        #expect(explanation.restrictions.map(\.scope) == [scope])
        fixture.restrict(scope, nil)
        #expect(fixture.trial("door").restrictions.isEmpty)
        #expect(fixture.trial("door").counts[.passedOver(.dropped)] == nil)
    }

    @Test func `a record that cannot be read has its topic's restriction`() {
        fixture.restrict(Self.topic, .drop)
        let explanation = fixture.trial("door", "{")
        #expect(explanation.unreadable != nil)
        #expect(explanation.restrictions.map(\.scope) == [Self.topic])
    }

    @Test func `a record whose pushes would wait says for what`() {
        fixture.restrict(Self.home, .pause)
        fixture.restrict(Self.allControls, .limit(perSecond: 7))
        let explanation = fixture.trial("door")
        #expect(explanation.counts == [.push(.controls): 1, .push(.widgets): 1])
        #expect(explanation.restrictions.map(\.scope) == [Self.home])
    }
}
