// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A large fan-out goes evenly over a window.
@Suite struct `A spread fan-out` {
    private static let tokens = 3000

    private func fixture(
        window: Duration = .seconds(20), bindings: [TopicBinding] = [.standard],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(bindings: bindings) { settings in
            settings.registrationGrace = .zero
            settings.slots = 1024
            settings.spread = window
            settings.spreadAbove = 1000
            adjust(&settings)
        }
        fixture.checksEachCall = false
        for number in 0..<Self.tokens {
            fixture.registerControl(
                "I\(number)", [UInt8(number >> 8), UInt8(number & 255)], shows: ["hot"])
        }
        fixture.registerControl("S", [255, 255], shows: ["small"])
        return fixture
    }

    /// What goes in each of so many seconds.
    private func sent(_ fixture: PipelineFixture, seconds: Int) -> [Int] {
        (0..<seconds).map { _ in
            (0..<50).reduce(0) { sum, _ in
                fixture.pass(.milliseconds(20))
                return sum + fixture.deliverAll().count
            }
        }
    }

    @Test func `each second has its share within a tenth, and all come`() {
        let fixture = fixture()
        fixture.event("hot")
        #expect(fixture.deliverAll().count <= 1)
        let sent = sent(fixture, seconds: 20)
        #expect(sent.allSatisfy { (135...165).contains($0) }, "\(sent)")
        let rest = self.sent(fixture, seconds: 1)[0]
        #expect(sent.reduce(rest, +) == Self.tokens && fixture.isIdle)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `nothing rests meanwhile, and a small event goes at once`() {
        let fixture = fixture()
        fixture.event("hot")
        _ = sent(fixture, seconds: 3)
        #expect(fixture.load.resting == 0 && fixture.load.queued == 0)
        fixture.event("small")
        #expect(fixture.take().map(\.token) == [[255, 255]])
        #expect(fixture.committableOffset == 0, "the fan-out holds its event")
    }

    @Test func `an event of fewer tokens, or without a window, goes at once`() {
        let few = fixture { $0.spreadAbove = Self.tokens }
        few.event("hot")
        #expect(sent(few, seconds: 1)[0] == Self.tokens)
        let none = fixture(window: .zero)
        none.event("hot")
        #expect(sent(none, seconds: 1)[0] == Self.tokens)
    }

    @Test func `a second event joins, and is sent to each token within its own window`() {
        let fixture = fixture()
        fixture.event("hot")
        let first = sent(fixture, seconds: 10)
        fixture.event("hot")
        let second = sent(fixture, seconds: 21)
        #expect(first.reduce(0, +) + second.reduce(0, +) >= Self.tokens * 3 / 2 - 20)
        #expect(second.prefix(20).allSatisfy { (135...165).contains($0) }, "\(second)")
        #expect(fixture.isIdle && fixture.committableOffset == 2)
    }

    @Test func `an event with a short life takes half of it`() {
        let fixture = fixture { $0.events.changeTTL = .seconds(8) }
        fixture.event("hot")
        let sent = sent(fixture, seconds: 5)
        #expect(sent.reduce(0, +) == Self.tokens && fixture.counters.expired == 0)
        #expect(sent[0] < 1000)
    }

    @Test func `a worker sleeps until the next token is due`() {
        let fixture = fixture(window: .seconds(600))
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        let due = fixture.pipeline.nextDue(now: fixture.now)
        let wait = due - fixture.now.monotonic
        #expect(wait > .milliseconds(100) && wait <= .milliseconds(200), "\(wait)")
    }

    @Test func `a drain stops it, and a next owner that knows no progress sends to all`() {
        let fixture = fixture()
        fixture.event("hot")
        _ = sent(fixture, seconds: 3)
        fixture.pipeline.drain = .until(fixture.now.monotonic + .seconds(2))
        #expect(sent(fixture, seconds: 2).reduce(0, +) == 0)
        let isDrained = fixture.pipeline.isDrained(fixture.assignment)
        #expect(fixture.committableOffset == 0 && !isDrained)
        let next = self.fixture()
        next.event("hot")
        #expect(sent(next, seconds: 21).reduce(0, +) == Self.tokens)
    }

    @Test func `it ends with its partition, since the next owner goes on with it`() {
        let fixture = fixture()
        fixture.event("hot")
        _ = sent(fixture, seconds: 3)
        fixture.pipeline.drain = .until(fixture.now.monotonic + .seconds(2))
        #expect(fixture.load.fanOuts == 0, "the group must not wait for what stands still")
        fixture.pipeline.drain = nil
        fixture.unassign()
        #expect(sent(fixture, seconds: 21).reduce(0, +) == 0)
        #expect(fixture.isIdle)
        fixture.pipeline.checkInvariants()
    }

    @Test func `it goes on for the events of a partition that stays`() {
        let fixture = fixture()
        fixture.event("hot")
        fixture.assign(startOffset: 0)
        fixture.event("hot")
        _ = sent(fixture, seconds: 3)
        fixture.unassign()
        let rest = sent(fixture, seconds: 21).reduce(0, +)
        #expect(rest > Self.tokens * 3 / 4 && fixture.isIdle)
    }

    @Test func `half of the fan-outs that there may be are left to those that do not wait`() {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.spread = .seconds(60)
            settings.spreadAbove = 4
            settings.immediateFanOutMax = 4
            settings.fanOutsMax = 4
        }
        for subject in ["a", "b", "c"] {
            for number in 0..<20 {
                let token = Array(subject.utf8) + [UInt8(number)]
                fixture.registerControl("\(subject)\(number)", token, shows: [subject])
            }
        }
        for subject in ["a", "b", "c"] { fixture.event(subject) }
        fixture.pass(.milliseconds(1))
        let tokens = fixture.deliverAll().map { $0.token[0] }
        #expect(tokens.filter { $0 == UInt8(ascii: "c") }.count == 20)
        #expect(tokens.count < 30)
        let hasRoom = fixture.pipeline.hasRoomForEvents
        #expect(hasRoom)
    }

    @Test func `an operator's drop of its subject ends it, and the next event goes to all`() {
        let fixture = fixture()
        let hot = Restriction.Scope.subject(Array("hot".utf8), app: PipelineFixture.app)
        fixture.event("hot")
        #expect(sent(fixture, seconds: 3).reduce(0, +) > 400)
        fixture.restrict(hot, .drop)
        #expect(sent(fixture, seconds: 20).reduce(0, +) == 0)
        #expect(fixture.isIdle && fixture.committableOffset == 1)
        #expect(fixture.counters.subjectsDropped == 1)
        fixture.restrict(hot, nil)
        fixture.event("hot")
        #expect(sent(fixture, seconds: 21).reduce(0, +) == Self.tokens)
    }

    @Test func `an operator's drop of its topic ends it, unless another topic's event shares it`() {
        let fixture = fixture(bindings: [.standard, .standard])
        fixture.event("hot")
        fixture.assign(topic: 1, startOffset: 0)
        fixture.event("hot", binding: 1)
        #expect(sent(fixture, seconds: 3).reduce(0, +) > 400)
        fixture.restrict(.topic("events-0"), .drop)
        #expect(sent(fixture, seconds: 3).reduce(0, +) > 400)
        fixture.restrict(.topic("events-1"), .drop)
        #expect(sent(fixture, seconds: 20).reduce(0, +) == 0 && fixture.isIdle)
    }

    @Test func `after a stall the window is longer, and the herd does not come together`() {
        let fixture = fixture()
        fixture.event("hot")
        _ = sent(fixture, seconds: 2)
        fixture.pass(.seconds(8))
        let after = sent(fixture, seconds: 2)
        #expect(after[0] < 240 && after[1] < 165, "\(after)")
    }
}
