// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A token whose pushes fail again and again has one letter, and another one with their number.
@Suite struct `Repeated failures` {
    private static let period = Duration.seconds(600)

    private func fixture(
        after period: Duration = Self.period, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.deadLetterRepeatAfter = period
            adjust(&settings)
        }
        for number in 1...3 as ClosedRange<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s\(number)", "all"])
        }
        fixture.register("D", [.device([9], shows: ["alert"])])
        return fixture
    }

    /// Lets the pushes of one event fail.
    private func fail(
        _ subject: String, _ value: String? = nil, _ status: UInt16 = 400,
        _ reason: APNSReason = .badMessageId, on fixture: PipelineFixture
    ) {
        fixture.event(subject, value)
        for push in fixture.take() { fixture.answer(push, status, reason) }
        fixture.pass(.seconds(1))
    }

    private func letters(_ fixture: PipelineFixture) throws -> [DeadLetter] {
        let records = fixture.takeRecords().filter { $0.topic == .deadLetters }
        fixture.acknowledge(records)
        return try records.map { try $0.letter() }
    }

    @Test func `with another period what was counted is told, and counting begins anew`() throws {
        let fixture = fixture()
        for _ in 0..<3 { fail("s1", on: fixture) }
        _ = try letters(fixture)
        var settings = fixture.pipeline.state.settings
        settings.deadLetterRepeatAfter = .seconds(5)
        try fixture.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(try letters(fixture).map(\.repeats) == [2])
        for _ in 0..<2 { fail("s1", on: fixture) }
        fixture.pass(.seconds(5))
        #expect(try letters(fixture).map(\.repeats) == [nil, 1])
    }

    @Test func `what fails again is counted, and told at the end of the period`() throws {
        let fixture = fixture()
        for _ in 0..<5 { fail("s1", on: fixture) }
        let first = try letters(fixture)
        #expect(first.count == 1 && first[0].repeats == nil && first[0].source.offset == 0)
        #expect(fixture.counters.failuresRepeated == 4 && fixture.counters.rejected == 5)
        #expect(fixture.takeFailures().map(\.count) == [5])
        let began = fixture.now.wall
        fixture.pass(Self.period)
        let summary = try letters(fixture)
        try #require(summary.count == 1)
        #expect(summary[0].repeats == 4 && summary[0].source.offset == 4)
        #expect(summary[0].targets.map(\.token) == [[1]] && summary[0].subject == Array("s1".utf8))
        #expect(summary[0].firstAt < summary[0].lastAt && summary[0].lastAt < began)
        #expect(fixture.takeFailures().isEmpty, "each was noted as it failed")
        // After the period the next one has a letter of its own.
        fail("s1", on: fixture)
        #expect(try letters(fixture).map(\.repeats) == [nil])
    }

    @Test func `a period without another failure writes nothing at its end`() throws {
        let fixture = fixture()
        fail("s1", on: fixture)
        #expect(try letters(fixture).count == 1)
        let due = fixture.pipeline.nextDue(now: fixture.now)
        #expect(due < fixture.now.monotonic + Self.period)
        fixture.pass(Self.period)
        #expect(try letters(fixture).isEmpty && fixture.pipeline.state.outbox.repeated.count == 0)
    }

    @Test func `a failure that is counted holds no offset`() throws {
        let fixture = fixture()
        fail("s1", on: fixture)
        _ = try letters(fixture)
        fail("s1", on: fixture)
        #expect(fixture.committableOffset == 2 && fixture.isIdle)
    }

    @Test func `the letter that the others rely on holds its offset until Kafka has it`() throws {
        let fixture = fixture()
        fail("s1", on: fixture)
        let first = fixture.takeRecords()
        fail("s1", on: fixture)
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge(first)
        #expect(fixture.committableOffset == 2)
    }

    @Test func `another token, reason, status or payload says something else`() throws {
        let fixture = fixture()
        fail("s1", on: fixture)
        fail("s2", on: fixture)
        fail("s1", nil, 404, .badMessageId, on: fixture)
        fail("s1", nil, 400, .badPriority, on: fixture)
        for text in ["a", "b", "b"] { fail("alert", EventValue.alert(text), on: fixture) }
        #expect(try letters(fixture).count == 7 && fixture.counters.failuresRepeated == 0)
    }

    @Test func `of another subject of the same token a letter says the same`() throws {
        let fixture = fixture()
        fail("s1", on: fixture)
        fail("all", on: fixture)
        // Of the three tokens of the second event one is known.
        #expect(try letters(fixture).map(\.targets.count) == [1, 2])
        #expect(fixture.counters.failuresRepeated == 1)
    }

    @Test func `at the end all that is known is told`() throws {
        let fixture = fixture()
        for _ in 0..<3 { fail("s1", on: fixture) }
        fail("s2", on: fixture)
        _ = try letters(fixture)
        fixture.pipeline.flushDeadLetters(now: fixture.now, all: true)
        #expect(try letters(fixture).map(\.repeats) == [2])
        #expect(fixture.pipeline.state.outbox.repeated.count == 0 && fixture.isIdle)
    }

    @Test func `without a period each failure has a letter`() throws {
        let fixture = fixture(after: .zero)
        for _ in 0..<3 { fail("s1", on: fixture) }
        #expect(try letters(fixture).map(\.repeats) == [nil, nil, nil])
    }

    @Test func `the oldest period ends early when there are too many`() throws {
        var repeated = RepeatedFailures()
        func letter(_ number: Int) -> DeadLetter {
            DeadLetter(
                reason: "BadDeviceToken", source: .init(topic: "t", partition: 0, offset: 0),
                firstAt: WallTime(milliseconds: 1), lastAt: WallTime(milliseconds: 2),
                targets: [
                    .init(
                        token: [UInt8(number >> 8), UInt8(number & 255)],
                        environment: .production, apnsTopic: "a")
                ])
        }
        let (now, end) = (MonotonicTime(nanoseconds: 0), MonotonicTime(nanoseconds: 1000))
        for number in 0..<RepeatedFailures.periodsMax {
            let ended = repeated.began(with: letter(number), until: end)
            #expect(ended?.repeats == nil)
        }
        for _ in 0..<2 {
            let isCounted = repeated.counts(letter(0), now: now)
            #expect(isCounted)
        }
        let early = repeated.began(with: letter(9999), until: end)
        #expect(early?.repeats == 2)
        let counted = (0...1).map { repeated.counts(letter($0), now: now) }
        #expect(counted == [false, true])
        #expect(repeated.count == RepeatedFailures.periodsMax && repeated.untold == 1)
        repeated.checkInvariants()
        let isOver = !repeated.counts(letter(1), now: end)
        #expect(isOver, "the period is over")
        let told = (0..<2).map { _ in repeated.takeDue(now: end, all: false)?.repeats }
        #expect(told == [1, nil] && repeated.count == 0)
        repeated.checkInvariants()
    }

    @Test func `without room for letters the number goes into the merged one`() throws {
        let fixture = fixture { $0.deadLetterBytesMax = 4096 }
        for _ in 0..<4 { fail("s1", on: fixture) }
        // Letters that Kafka does not acknowledge take up all of the room.
        for number in 0..<20 {
            fail("s2", nil, 400, number % 2 == 0 ? .badPriority : .badExpirationDate, on: fixture)
            fail("alert", EventValue.alert("\(number)"), on: fixture)
        }
        let merged = fixture.counters.failuresMerged
        fixture.pass(Self.period)
        #expect(fixture.counters.failuresMerged >= merged + 3)
    }
}
