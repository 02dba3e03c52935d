// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `Late registrations` {
    private static let grace = Duration.seconds(2)

    /// A worker without a free slot, if `slots` is 1: the only one is taken by token 9.
    private func fixture(slots: Int = 64) -> PartsFixture {
        let fixture = PartsFixture { settings in
            settings.slots = slots
            settings.registrationGrace = Self.grace
        }
        fixture.registerControls(1, shows: "own", from: 9)
        fixture.event("own")
        return fixture
    }

    // MARK: What is remembered

    @Test func `late registrations cost bytes by events with conditions, not by plain ones`() {
        let fixture = fixture()
        for number in 0..<100 { fixture.event("s\(number)") }
        #expect(fixture.rememberedBytes == 0)
        fixture.event("s1", #"{"v":1,"ttlSeconds":60}"#)
        let one = fixture.rememberedBytes
        fixture.event("s2", #"{"v":1,"ttlSeconds":60}"#)
        #expect(one > 0 && fixture.rememberedBytes == 2 * one)
    }

    @Test func `late registrations forget an event and its payload right after its grace period`() {
        let fixture = fixture()
        fixture.event("score", EventValue.alert("1"))
        let (bytes, payload) = (fixture.rememberedBytes, fixture.payloadBytes)
        #expect(bytes > 0 && payload > 0)
        fixture.pass(Self.grace)
        fixture.late.forget(&fixture.state, now: fixture.now)
        #expect(fixture.rememberedBytes == bytes && fixture.payloadBytes == payload)
        fixture.pass(.milliseconds(1))
        fixture.late.forget(&fixture.state, now: fixture.now)
        fixture.checkInvariants()
        #expect(fixture.rememberedBytes == 0 && fixture.payloadBytes == 0)
    }

    @Test(arguments: [(wait: 1999, pushes: 1), (wait: 2000, pushes: 0)])
    func `late registrations are owed no event past its grace, however times are rounded`(
        wait: Int64, pushes: Int
    ) {
        let fixture = PartsFixture { $0.registrationGrace = Self.grace }
        fixture.event("door")
        fixture.pass(.milliseconds(wait))
        fixture.registerControls(1, shows: "door")
        #expect(fixture.pushes == pushes)
        #expect(fixture.deliverAll().count == pushes && fixture.claims == 0)
    }

    @Test func `late registrations are looked for only once an event has been read`() {
        let fixture = fixture()
        fixture.event("door")
        fixture.state.sequence = 0
        fixture.registerControls(1, shows: "door", from: 1)
        #expect(fixture.pushes == 1, "a replay of registrations asks for nothing")
        fixture.state.sequence = 1
        fixture.registerControls(1, shows: "door", from: 2)
        #expect(fixture.pushes == 2)
    }

    // MARK: No free slot

    @Test func `late registrations wait for slots with all that they are owed remembered`() {
        let fixture = fixture(slots: 1)
        fixture.pass(.milliseconds(100))
        fixture.event("score", EventValue.alert("1"))
        fixture.register("D", [.device([1], shows: ["score"])])
        let bytes = fixture.rememberedBytes
        #expect(fixture.owed == 1 && fixture.pushes == 1)
        fixture.pass(.seconds(3))
        fixture.late.forget(&fixture.state, now: fixture.now)
        fixture.sendOwed()
        #expect(fixture.owed == 1 && fixture.rememberedBytes == bytes)
        #expect(fixture.deliverAll() == [[9]])
        #expect(fixture.committableOffset == 0, "the entry holds what is past its grace")
        fixture.sendOwed()
        #expect(fixture.owed == 0 && fixture.deliverAll() == [[1]])
        fixture.late.forget(&fixture.state, now: fixture.now)
        #expect(fixture.rememberedBytes == 0 && fixture.committableOffset == 2)
    }

    @Test func `late registrations count each push that a token was owed when it goes`() {
        let fixture = fixture(slots: 1)
        fixture.event("score")
        for text in ["1", "2"] { fixture.event("score", EventValue.alert(text)) }
        fixture.register("D", [.device([1], shows: ["score"], hearsChanges: true)])
        fixture.register("E", [.device([2], shows: ["score"])])
        #expect(fixture.owed == 2 && fixture.counters.unregistered == 0)
        fixture.register("D")
        #expect(fixture.owed == 1 && fixture.counters.unregistered == 3)
        fixture.register("E")
        #expect(fixture.owed == 0 && fixture.claims == 1, "that of the push in the only slot")
    }

    // MARK: Fan-outs

    @Test func `late registrations let a fan-out visit at once what moves in its list`() {
        let fixture = PartsFixture { $0.immediateFanOutMax = 1 }
        fixture.registerControls(4, shows: "hot")
        fixture.event("hot")
        #expect(fixture.fanOuts == 1 && fixture.pushes == 0)
        // The last entry takes the place of the first.
        fixture.register("I1")
        #expect(fixture.take().map(\.token) == [[4]])
        _ = fixture.advance()
        #expect(fixture.take().map(\.token).inOrder == [[2], [3]])
    }
}
