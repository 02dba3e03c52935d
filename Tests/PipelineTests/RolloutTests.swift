// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// An app moves from another sender to this one.
@Suite struct `A rollout` {
    private static let scope = Restriction.Scope.rollout(app: PipelineFixture.app)
    /// The numbers of the tokens of one byte, 1 to 20, by Python's hashlib.
    private static let numbers = [
        75, 33, 52, 0, 2, 28, 88, 25, 83, 13, 28, 29, 21, 79, 14, 96, 7, 84, 69, 79,
    ]
    private static let tokens = 1...UInt8(numbers.count)

    private static func below(_ percent: Int) -> Set<UInt8> {
        Set(tokens.filter { numbers[Int($0) - 1] < percent })
    }

    private func fixture(immediateFanOutMax: Int = 64) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.immediateFanOutMax = immediateFanOutMax
        }
        for token in Self.tokens {
            fixture.registerControl("I\(token)", [token], shows: ["all"])
        }
        return fixture
    }

    private func roll(
        _ fixture: PipelineFixture, _ percents: Int..., in lead: Duration = .zero,
        of classes: TokenClassSet = [TokenClassSet(.control)], always tokens: [UInt64] = []
    ) {
        let from = fixture.now.wall + lead
        let steps = percents.enumerated().map { number, percent in
            Rollout.Step(percent: percent, from: from + .seconds(60 * number))
        }
        fixture.restrict(Self.scope, .rollout(Rollout(steps, of: classes, tokens: tokens)))
    }

    private func reached(_ fixture: PipelineFixture) -> Set<UInt8> {
        Set(fixture.deliverAll().map { $0.token[0] })
    }

    @Test(arguments: [0, 1, 10, 29, 50, 97, 100])
    func `a rollout sends to the tokens whose number is below the percentage`(percent: Int) {
        let fixture = fixture()
        roll(fixture, percent)
        let offset = fixture.event("all")
        let expected = Self.below(percent)
        #expect(reached(fixture) == expected)
        fixture.pass(.milliseconds(200))
        #expect(fixture.committableOffset == offset + 1, "what is left to others holds nothing")
        let left = Self.tokens.count - expected.count
        #expect(fixture.pipeline.state.tally.total(.otherSender) == left)
        let addsUp = fixture.pipeline.pushesAddUp
        #expect(addsUp)
    }

    @Test(arguments: [64, 2])
    func `a step of a rollout is for the events that are written from its time on`(atOnce: Int) {
        let fixture = fixture(immediateFanOutMax: atOnce)
        let start = fixture.now.wall
        roll(fixture, 10, 50, 29)
        // Each is read late: it was written in the step before.
        let expected = [-5: 10, 5: 10, 65: 50, 125: 29, 1000: 29]
        for (seconds, percent) in expected.sorted(by: { $0.key < $1.key }) {
            fixture.event("all", writtenAt: start + .seconds(seconds))
            #expect(Set(reachedInTurns(fixture)).isSuperset(of: Self.below(percent)))
        }
        // Long after the last step none of the former ones counts, however an event is fanned out.
        fixture.pass(.seconds(1200))
        fixture.event("all")
        #expect(reachedInTurns(fixture) == Self.below(29))
    }

    private func reachedInTurns(_ fixture: PipelineFixture) -> Set<UInt8> {
        var all = reached(fixture)
        for _ in 0..<20 {
            fixture.pass(.milliseconds(10))
            all.formUnion(reached(fixture))
        }
        return all
    }

    @Test func `of an event that is read at once its own step alone counts`() {
        let fixture = fixture()
        let start = fixture.now.wall
        roll(fixture, 50, 10)
        fixture.pass(.seconds(90))
        fixture.event("all", writtenAt: start + .milliseconds(59_999))
        #expect(reached(fixture) == Self.below(50))
        fixture.event("all", writtenAt: start + .seconds(60))
        #expect(reached(fixture) == Self.below(10))
    }

    @Test func `a rollout's last step counts for a token that registers after an event`() {
        let fixture = PipelineFixture { $0.registrationGrace = .seconds(30) }
        roll(fixture, 100, 0)
        fixture.pass(.seconds(200))
        fixture.registerControl("I0", [200], shows: ["all"])
        fixture.event("all")
        fixture.pass(.seconds(1))
        fixture.registerControl("I1", [1], shows: ["all"])
        fixture.pass(.seconds(1))
        #expect(reached(fixture).isEmpty)
    }

    @Test func `a rollout leaves classes alone that no other sender has`() {
        let fixture = fixture()
        roll(fixture, 0, of: [TokenClassSet(.device)])
        fixture.event("all")
        #expect(reached(fixture) == Set(Self.tokens))
    }

    @Test func `a rollout sends to the tokens that it names in any case`() {
        let fixture = fixture()
        // The first 8 bytes of the SHA-256 of the byte 1.
        roll(fixture, 0, always: [0x4BF5_122F_3445_54C5])
        fixture.event("all")
        #expect(reached(fixture) == [1])
    }

    @Test func `of another app a rollout says nothing, and lifted it is over`() {
        let fixture = fixture()
        fixture.restrict(
            .rollout(app: "com.example.Garden"),
            .rollout(
                Rollout(
                    [Rollout.Step(percent: 0, from: fixture.now.wall)],
                    of: [TokenClassSet(.control)])))
        fixture.event("all")
        #expect(reached(fixture) == Set(Self.tokens))
        roll(fixture, 0)
        fixture.event("all")
        #expect(reached(fixture).isEmpty)
        fixture.restrict(Self.scope, nil)
        fixture.event("all")
        #expect(reached(fixture) == Set(Self.tokens))
    }

    @Test func `a pause of the app counts beside a rollout, and ends without it`() {
        let fixture = fixture()
        roll(fixture, 50)
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .pause)
        fixture.event("all")
        fixture.pass(.seconds(1))
        #expect(reached(fixture).isEmpty)
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), nil)
        fixture.pass(.seconds(1))
        #expect(reached(fixture) == Self.below(50))
    }
}
