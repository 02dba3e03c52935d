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
        _ fixture: PipelineFixture, to percent: Int, before: Int = 100,
        in lead: Duration = .zero, always tokens: [UInt64] = []
    ) {
        fixture.restrict(
            Self.scope,
            .rollout(
                Rollout(
                    percent: percent, percentBefore: before, from: fixture.now.wall + lead,
                    tokens: tokens)))
    }

    private func reached(_ fixture: PipelineFixture) -> Set<UInt8> {
        Set(fixture.deliverAll().map { $0.token[0] })
    }

    @Test(arguments: [0, 1, 10, 29, 50, 97, 100])
    func `a rollout sends to the tokens whose number is below the percentage`(percent: Int) {
        let fixture = fixture()
        roll(fixture, to: percent)
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

    @Test func `a step of a rollout is for the events that are written from its time on`() {
        let fixture = fixture()
        roll(fixture, to: 50, before: 10, in: .seconds(60))
        fixture.event("all")
        #expect(reached(fixture) == Self.below(10))
        let from = fixture.now.wall + .seconds(60)
        fixture.pass(.seconds(90))
        // It was written before, and is read late.
        fixture.event("all", writtenAt: from + .milliseconds(-10))
        #expect(reached(fixture) == Self.below(10))
        fixture.event("all", writtenAt: from)
        #expect(reached(fixture) == Self.below(50))
    }

    @Test func `where a rollout's fan-out may stand for several events, nobody is left out`() {
        let fixture = fixture(immediateFanOutMax: 2)
        roll(fixture, to: 10, before: 50, in: .seconds(60))
        fixture.event("all")
        var all: Set<UInt8> = []
        for _ in 0..<20 {
            fixture.pass(.milliseconds(10))
            all.formUnion(reached(fixture))
        }
        #expect(all == Self.below(50))
    }

    @Test func `a rollout sends to the tokens that it names in any case`() {
        let fixture = fixture()
        // The first 8 bytes of the SHA-256 of the byte 1.
        roll(fixture, to: 0, always: [0x4BF5_122F_3445_54C5])
        fixture.event("all")
        #expect(reached(fixture) == [1])
    }

    @Test func `of another app a rollout says nothing, and lifted it is over`() {
        let fixture = fixture()
        fixture.restrict(
            .rollout(app: "com.example.Garden"),
            .rollout(Rollout(percent: 0, percentBefore: 0, from: fixture.now.wall)))
        fixture.event("all")
        #expect(reached(fixture) == Set(Self.tokens))
        roll(fixture, to: 0)
        fixture.event("all")
        #expect(reached(fixture).isEmpty)
        fixture.restrict(Self.scope, nil)
        fixture.event("all")
        #expect(reached(fixture) == Set(Self.tokens))
    }

    @Test func `a pause of the app counts beside a rollout, and ends without it`() {
        let fixture = fixture()
        roll(fixture, to: 50)
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .pause)
        fixture.event("all")
        fixture.pass(.seconds(1))
        #expect(reached(fixture).isEmpty)
        fixture.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), nil)
        fixture.pass(.seconds(1))
        #expect(reached(fixture) == Self.below(50))
    }
}
