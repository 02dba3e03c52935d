// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What the configuration pauses, drops and limits, beside what operators ask for.
@Suite struct `Configured restrictions` {
    private static let home = Restriction.Scope.pushes(app: PipelineFixture.app, tokenClass: nil)

    private func fixture(_ restrictions: [ConfiguredRestriction]) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.restrictions = restrictions
        }
        fixture.registerControl("I", [1], shows: ["door"])
        fixture.pass(.milliseconds(1))
        return fixture
    }

    private func ask(_ action: Restriction.Action?, _ fixture: PipelineFixture) {
        let value = action.map {
            RestrictionEncoder.value(Restriction($0, by: "anna", at: fixture.now.wall))
        }
        RecordKey.restriction(Self.home).withUnsafeBytes { key in
            guard let value else {
                #expect(fixture.pipeline.restrictionRecord(key: key, value: nil) == nil)
                return
            }
            let problem = value.withUnsafeBytes {
                fixture.pipeline.restrictionRecord(key: key, value: $0)
            }
            #expect(problem == nil)
        }
        fixture.pass(.milliseconds(1))
    }

    @Test func `a configured pause holds from the first event on, and a reload ends it`() throws {
        let fixture = fixture([ConfiguredRestriction(.pause, Self.home)])
        fixture.event("door")
        fixture.pass(.seconds(60))
        #expect(fixture.take().isEmpty)
        #expect(fixture.pipeline.restrictions.inForce[Self.home]?.by == ConfiguredRestriction.by)
        var settings = fixture.pipeline.state.settings
        settings.restrictions = []
        try fixture.pipeline.adopt(settings.live, bindings: [.standard])
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().count == 1 && fixture.pipeline.restrictions.inForce.isEmpty)
    }

    @Test(
        arguments: [
            (Restriction.Action.limit(perSecond: 5), Restriction.Action.limit(perSecond: 9), 0),
            (.limit(perSecond: 9), .limit(perSecond: 5), 1),
            (.limit(perSecond: 5), .pause, 1), (.pause, .limit(perSecond: 5), 0),
            (.pause, .drop, 1), (.drop, .pause, 0), (.drop, .drop, 1),
        ] as [(Restriction.Action, Restriction.Action, Int)])
    func `of an operator and the configuration the stricter counts`(
        configured: Restriction.Action, asked: Restriction.Action, winner: Int
    ) {
        let fixture = fixture([ConfiguredRestriction(configured, Self.home)])
        ask(asked, fixture)
        let inForce = fixture.pipeline.restrictions.inForce[Self.home]
        #expect(inForce?.action == [configured, asked][winner])
        #expect(inForce?.by == [ConfiguredRestriction.by, "anna"][winner])
        // Resuming lifts what the operator asked for, and nothing else.
        ask(nil, fixture)
        #expect(fixture.pipeline.restrictions.inForce[Self.home]?.action == configured)
    }

    @Test func `of two that say of the same the stricter counts`() {
        let fixture = fixture([
            ConfiguredRestriction(.limit(perSecond: 5), Self.home),
            ConfiguredRestriction(.drop, Self.home), ConfiguredRestriction(.pause, Self.home),
        ])
        #expect(fixture.pipeline.restrictions.inForce[Self.home]?.action == .drop)
    }
}
