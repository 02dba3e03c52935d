// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A large fan-out goes on where the owner before was, by the note that it has left.
@Suite struct `The next owner of a spread fan-out` {
    private static let tokens = 1500
    private static let alert = EventValue.alert("Version 2 is out")

    /// A worker whose lists are in an order of its own, and the partition from its beginning.
    private func owner(
        seed: UInt64, note: CommitNote? = nil, more: Range<Int> = 0..<0,
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.seed = seed
            settings.registrationGrace = .zero
            settings.slots = 512
            settings.spread = .seconds(20)
            settings.spreadAbove = 1000
            adjust(&settings)
        }
        fixture.checksEachCall = false
        var dice = SplitMix64(seed: seed)
        for number in (0..<Self.tokens).shuffled(using: &dice) { register(number, fixture) }
        fixture.register("S", [.device([255, 255], shows: ["small"])])
        for number in more { register(number, fixture) }
        fixture.unassign()
        fixture.assign(startOffset: 0, note: note, nextOffset: 0)
        return fixture
    }

    private func register(_ number: Int, _ fixture: PipelineFixture) {
        fixture.register(
            "I\(number)", [.device([UInt8(number >> 8), UInt8(number & 255)], shows: ["hot"])])
    }

    /// What is accepted in this time.
    private func sent(_ fixture: PipelineFixture, seconds: Int) -> [[UInt8]] {
        (0..<50 * seconds).flatMap { _ in
            fixture.pass(.milliseconds(20))
            return fixture.deliverAll().map(\.token)
        }
    }

    /// The note as the next owner reads it.
    private func left(by fixture: PipelineFixture) throws -> CommitNote {
        let text = try #require(fixture.commitNote?.text(cluster: "one"))
        return try #require(CommitNote(text, cluster: "one"))
    }

    private func counts(_ tokens: [[UInt8]]) -> [[UInt8]: Int] {
        tokens.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    @Test func `each phone has an alert once, but for a round at each change of owner`() throws {
        var told: [[UInt8]] = []
        var note: CommitNote?
        for number in 0..<7 as Range<UInt64> {
            let owner = owner(seed: number, note: note)
            owner.event("hot", Self.alert)
            told += sent(owner, seconds: number == 6 ? 30 : 2)
            if number == 6 {
                #expect(owner.isIdle && owner.committableOffset == 1)
                break
            }
            // It ends in the middle of a round, with requests that nobody will see answered.
            owner.pass(.milliseconds(70))
            _ = owner.take()
            note = try left(by: owner)
        }
        let counts = counts(told)
        #expect(counts.count == Self.tokens, "somebody is untold")
        let round = Self.tokens / 64
        #expect(told.count <= Self.tokens + 6 * 2 * round, "\(told.count)")
        #expect(counts.values.max()! <= 3)
    }

    @Test func `each second has its share under the next owner, too`() throws {
        let first = owner(seed: 1)
        first.event("hot", Self.alert)
        _ = sent(first, seconds: 10)
        let next = owner(seed: 2, note: try left(by: first))
        next.event("hot", Self.alert)
        let shares = (0..<9).map { _ in sent(next, seconds: 1).count }
        #expect(shares.allSatisfy { (60...90).contains($0) }, "\(shares)")
        #expect(sent(next, seconds: 2).count <= 180 && next.isIdle)
    }

    @Test func `a token that the owner before did not know is told, wherever it stands`() throws {
        let first = owner(seed: 1)
        first.event("hot", Self.alert)
        var told = sent(first, seconds: 10)
        let more = Self.tokens..<Self.tokens + 40
        let next = owner(seed: 2, note: try left(by: first), more: more)
        next.event("hot", Self.alert)
        let newcomers = Set(more.map { [UInt8($0 >> 8), UInt8($0 & 255)] })
        let rest = sent(next, seconds: 15)
        told += rest
        #expect(counts(rest.filter { newcomers.contains($0) }).count == 40)
        #expect(counts(rest).values.allSatisfy { $0 == 1 })
        #expect(counts(told).count == Self.tokens + 40 && next.isIdle)
    }

    @Test func `the progress does not pass what is under way, nor an older event`() throws {
        let first = owner(seed: 1)
        first.event("hot", Self.alert)
        var flights: [SentPush] = []
        for _ in 0..<100 {
            first.pass(.milliseconds(20))
            flights += first.take()
        }
        #expect(flights.count > 100 && first.commitNote == nil)
        for push in flights.dropFirst() { first.answer(push, 200) }
        #expect(first.commitNote == nil, "the first push of all is under way")
        first.answer(flights[0], 200)
        let progress = try #require(try left(by: first).spread.first)
        #expect(progress.offset == 0 && progress.progress.index >= 4)

        let other = owner(seed: 2)
        other.event("small", Self.alert)
        other.event("hot", Self.alert)
        let small = other.take()
        #expect(small.map(\.token) == [[255, 255]])
        _ = sent(other, seconds: 3)
        #expect(other.commitNote == nil, "what answers for both would hold the older one alone")
        other.answer(small[0], 200)
        #expect(try left(by: other).spread.map(\.offset) == [1])
    }

    @Test func `of several events each has its progress, none further than an older one`() throws {
        let first = owner(seed: 1)
        first.event("hot", Self.alert)
        var told = sent(first, seconds: 4)
        first.event("hot", EventValue.alert("Version 3 is out"))
        told += sent(first, seconds: 4)
        let note = try left(by: first)
        #expect(note.spread.map(\.offset) == [0, 1])
        #expect(note.spread[0].progress.index > note.spread[1].progress.index)
        let next = owner(seed: 2, note: note)
        #expect(try left(by: next) == note, "it is passed on by an owner that has not read it")
        next.event("hot", Self.alert)
        #expect(try left(by: next).spread.contains(note.spread[1]))
        next.event("hot", EventValue.alert("Version 3 is out"))
        told += sent(next, seconds: 25)
        #expect(next.isIdle && next.committableOffset == 2)
        let counts = counts(told)
        #expect(counts.count == Self.tokens && counts.values.allSatisfy { (2...4).contains($0) })
        #expect(told.count <= 2 * Self.tokens + 4 * Self.tokens / 64, "\(told.count)")
    }

    @Test func `no progress passes a token that came late before it has its push`() throws {
        let fixture = owner(seed: 1) { $0.registrationGrace = .seconds(10) }
        fixture.event("hot", Self.alert)
        _ = sent(fixture, seconds: 4)
        #expect(try left(by: fixture).spread.count == 1)
        register(Self.tokens, fixture)
        let late = fixture.take()
        #expect(late.count == 1)
        let isAhead = late[0].token.withUnsafeBytes { token in
            fixture.commitNote?.spread.allSatisfy { !$0.progress.isBehind(token) } ?? true
        }
        #expect(isAhead, "the next owner would take it for told")
        fixture.answer(late[0], 200)
        #expect(try left(by: fixture).spread.count == 1)
    }

    @Test func `tokens that come and go meanwhile are neither left out nor told twice`() {
        let fixture = owner(seed: 1)
        fixture.event("hot", Self.alert)
        var told: [[UInt8]] = []
        for number in 0..<200 {
            told += sent(fixture, seconds: 1).map(\.self)
            if number < 100 { fixture.unregister("I\(number)") }
            if fixture.isIdle { break }
        }
        let counts = counts(told)
        #expect(
            (100..<Self.tokens).allSatisfy { counts[[UInt8($0 >> 8), UInt8($0 & 255)]] != nil })
        #expect(told.count < Self.tokens + 20 && fixture.isIdle)
    }
}
