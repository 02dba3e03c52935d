// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Delivery
@testable internal import Pipeline

@Suite struct `Suppressions and their limits` {
    /// A control whose route believes any 400 about a token.
    private func credulous(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.tokenGuard.window = 2
            settings.tokenGuard.badShareMax = 1
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 200)
        return fixture
    }

    @Test func `an event waits for the dead letter beside its suppression as well`() {
        let fixture = credulous()
        let offset = fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badDeviceToken)
        fixture.pass(.seconds(1))
        let records = fixture.takeRecords()
        #expect(records.map(\.topic) == [.suppressions, .deadLetters])
        fixture.acknowledge([records[0]])
        #expect(fixture.committableOffset == offset)
        fixture.acknowledge([records[1]])
        #expect(fixture.committableOffset == offset + 1)
    }

    @Test func `a complaint about a token that is gone is no suppression on its next life`() {
        let fixture = credulous()
        fixture.event("door")
        let push = fixture.take()[0]
        fixture.unregister("A")
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.answer(push, 400, .badDeviceToken)
        fixture.pass(.seconds(1))
        #expect(fixture.takeRecords().map(\.topic) == [.deadLetters])
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a 410 over the bound of a minute is counted, and the token stays`() {
        let fixture = credulous { $0.tokenGuard.suppressionsPerMinuteMax = 1 }
        fixture.registerControl("B", [2], shows: ["door"])
        fixture.event("door")
        for push in fixture.take() { fixture.answer(push, 410, .unregistered) }
        #expect(fixture.takeRecords().map(\.topic) == [.suppressions])
        #expect(fixture.counters.deadUnconfirmed == 1)
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `the follow-up of a push to a dead token ends with it, and is counted once`() {
        let fixture = credulous()
        let first = fixture.event("door")
        let push = fixture.take()[0]
        fixture.event("door")
        fixture.answer(push, 410, .unregistered)
        #expect(fixture.load.queued == 0)
        let records = fixture.takeRecords()
        #expect(fixture.committableOffset == first)
        fixture.acknowledge(records)
        #expect(fixture.committableOffset == first + 2)
        #expect(fixture.take().isEmpty)
        #expect(fixture.counters.suppressed == 1)
    }

    @Test func `a suppression without Apple's timestamp says none`() {
        let fixture = credulous()
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        let value = fixture.takeRecords().first?.value
        #expect(value?.contains("apnsTimestamp") == false)
    }
}

@Suite struct `The state of strikes` {
    private let hour = Duration.seconds(3600)
    private let start = MonotonicTime(nanoseconds: 1)

    private static func token(_ number: Int) -> [UInt8] {
        [UInt8(number >> 8), UInt8(number & 255)]
    }

    @Test func `three over an hour to the nanosecond are believed, and then begin anew`() {
        var state = StrikeBook()
        let times = [start, start + .seconds(1), start + hour - .nanoseconds(1), start + hour]
        let answers = times.map { state.strike(token: [1], now: $0) }
        #expect(answers == [false, false, false, true])
        let later = state.strike(token: [1], now: start + hour + hour)
        #expect(!later)
    }

    @Test func `a full state goes on counting those that stand in it`() {
        var state = StrikeBook()
        for number in 0..<4096 { _ = state.strike(token: Self.token(number), now: start) }
        _ = state.strike(token: Self.token(7), now: start)
        let believed = state.strike(token: Self.token(7), now: start + hour)
        #expect(believed)
    }

    @Test func `a full state forgets those of yesterday, and not those of today`() {
        var state = StrikeBook()
        let today = start + .seconds(80_000)
        for number in 0..<4096 {
            _ = state.strike(token: Self.token(number), now: number < 5 ? start : today)
        }
        // The next one needs a place.
        let now = start + .seconds(86_400)
        _ = state.strike(token: [9, 9, 9], now: now)
        let believed = [0, 5].map { number in
            _ = state.strike(token: Self.token(number), now: now)
            return state.strike(token: Self.token(number), now: now)
        }
        #expect(believed == [false, true])
    }

    @Test func `a state full of today's begins anew, so that it is bounded`() {
        var state = StrikeBook()
        for number in 0...4096 { _ = state.strike(token: Self.token(number), now: start) }
        _ = state.strike(token: Self.token(0), now: start + hour)
        let believed = state.strike(token: Self.token(0), now: start + hour)
        #expect(!believed)
    }
}
