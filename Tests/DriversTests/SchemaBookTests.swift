// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import SchemaCodecs
import Testing

@testable import SchemaRegistry

@Suite struct `A book of schemas` {
    private static let schema = try! RecordSchema(
        SchemaText(language: .avro, text: Array("\"int\"".utf8)))

    private static func time(_ seconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds) * 1_000_000_000)
    }

    private static func book(_ change: (inout RegistrySettings) -> Void = { _ in }) -> SchemaBook {
        var settings = RegistrySettings(urls: ["http://localhost"])
        change(&settings)
        return SchemaBook(settings, seed: 7)
    }

    private static func words(_ answer: SchemaAnswer) -> String {
        switch answer {
        case .known: "known"
        case .unknown(let reason): "unknown: \(reason)"
        case .unusable(let reason): "unusable: \(reason)"
        case .pending: "pending"
        case .unreachable(let cause): "unreachable: \(cause)"
        }
    }

    private func look(_ book: inout SchemaBook, _ number: UInt32, _ seconds: Int = 0) -> String {
        Self.words(book.lookup(SchemaID(rawValue: number), now: Self.time(seconds)).0)
    }

    /// The number of the schema that the next fetcher fetches; nil if it fetches none.
    private func fetch(_ book: inout SchemaBook, _ seconds: Int = 0) -> UInt32? {
        guard case .fetch(let schema) = book.turn(now: Self.time(seconds)) else { return nil }
        return schema.rawValue
    }

    private func end(
        _ book: inout SchemaBook, _ number: UInt32, _ outcome: SchemaBook.Outcome,
        _ seconds: Int = 0
    ) {
        book.ended(SchemaID(rawValue: number), outcome, now: Self.time(seconds))
    }

    /// Asks for the schemas again in each second, as whoever waits for them does, and answers at once.
    /// - Returns: by number, the seconds in which it was fetched.
    private func fetches(
        _ book: inout SchemaBook, of numbers: [UInt32], in seconds: Range<Int>,
        _ outcome: (UInt32, Int) -> SchemaBook.Outcome
    ) -> [UInt32: [Int]] {
        var fetched: [UInt32: [Int]] = [:]
        for second in seconds {
            for number in numbers { _ = look(&book, number, second) }
            while let number = fetch(&book, second) {
                fetched[number, default: []].append(second)
                end(&book, number, outcome(number, second), second)
            }
        }
        return fetched
    }

    @Test func `asks for schemas in the order in which they were wanted, each once`() {
        var book = Self.book()
        #expect(book.turn(now: Self.time(0)) == .end)
        for number: UInt32 in [3, 1, 3] { #expect(look(&book, number) == "pending") }
        #expect(fetch(&book) == 3)
        #expect(look(&book, 3) == "pending")
        #expect(fetch(&book) == 1)
        #expect(fetch(&book) == nil)
        end(&book, 3, .schema(Self.schema))
        #expect(look(&book, 3) == "known")
        end(&book, 1, .unusable("it is odd"))
        #expect(look(&book, 1) == "unusable: it is odd")
        #expect(book.turn(now: Self.time(0)) == .end && book.wantedCount == 0)
    }

    @Test func `believes for a while that there is no such schema, and then asks again`() {
        var book = Self.book { $0.unknownLife = .seconds(60) }
        _ = look(&book, 1, 99)
        #expect(fetch(&book, 99) == 1)
        end(&book, 1, .unknown("not there"), 100)
        #expect(look(&book, 1, 159) == "unknown: not there")
        #expect(fetch(&book, 159) == nil)
        #expect(look(&book, 1, 160) == "pending")
        #expect(fetch(&book, 160) == 1)
        end(&book, 1, .schema(Self.schema), 161)
        #expect(look(&book, 1, 1000) == "known")
    }

    @Test func `a schema that the registry refuses delays no other one`() {
        var book = Self.book()
        let fetched = fetches(&book, of: [7, 2, 3], in: 0..<1) { number, _ in
            number == 7 ? .failed("answers 403", retryAfter: .zero) : .schema(Self.schema)
        }
        #expect(fetched == [7: [0], 2: [0], 3: [0]])
        #expect(look(&book, 7) == "unreachable: answers 403")
        // One that is wanted later is not told of the other's answer.
        #expect(look(&book, 4) == "pending")
        #expect(fetch(&book) == 4)
        #expect(book.failure == nil)
    }

    @Test func `a schema that fails is asked for less and less often, at least once a minute`() {
        var book = Self.book()
        let times = fetches(&book, of: [7], in: 0..<1000) { _, _ in
            .failed("answers 500", retryAfter: .zero)
        }[7]!
        #expect(times[1] <= 1)
        for (attempt, pair) in zip(times, times.dropFirst()).enumerated() {
            // Seconds are whole here.
            let (wait, ceiling) = (pair.1 - pair.0, min(60, 1 << min(attempt, 6)))
            #expect(wait <= ceiling && wait >= ceiling / 10)
        }
        var asked = Self.book()
        _ = look(&asked, 7)
        #expect(fetch(&asked) == 7)
        end(&asked, 7, .failed("busy", retryAfter: .seconds(50)))
        _ = look(&asked, 7, 49)
        #expect(fetch(&asked, 49) == nil)
        #expect(fetch(&asked, 50) == 7)
    }

    @Test func `a registry that asks to be left alone is asked for no schema until then`() {
        var book = Self.book()
        for number: UInt32 in [1, 2] { _ = look(&book, number) }
        #expect(fetch(&book) == 1)
        end(&book, 1, .failed("answers 429", retryAfter: .seconds(40), isForAll: true))
        #expect(look(&book, 2, 39) == "unreachable: answers 429")
        #expect(look(&book, 3, 39) == "unreachable: answers 429")
        #expect(fetch(&book, 39) == nil && !book.isDue(now: Self.time(39)))
        #expect(book.turn(now: Self.time(39)) == .wait(until: Self.time(40)))
        #expect(look(&book, 3, 40) == "pending")
        #expect(fetch(&book, 40) == 2 && fetch(&book, 40) == 3)
        #expect(book.failure == nil)
    }

    /// Such as by a proxy in front of the registry.
    @Test func `a schema for which alone a rest is asked for delays the others once`() {
        var book = Self.book { $0.wantedLife = .seconds(10_000) }
        let times = fetches(&book, of: [7, 8], in: 0..<60) { number, _ in
            number == 7
                ? .failed("answers 503", retryAfter: .seconds(30), isForAll: true)
                : .schema(Self.schema)
        }
        #expect(times[7]!.count == 2 && times[7]![1] >= 30)
        #expect(times[8] == [30])
        #expect(look(&book, 9, times[7]![1]) == "pending")
        #expect(fetch(&book, times[7]![1]) == 9)
    }

    @Test func `schemas that are never answered leave a fetcher to the others`() {
        var book = Self.book { $0.fetchersMax = 3 }
        let slow: [UInt32] = [1, 2, 3, 4, 5]
        _ = fetches(&book, of: slow, in: 0..<1) { _, _ in .failed("timeout", retryAfter: .zero) }
        for number in slow { _ = look(&book, number, 10) }
        let retried = (0..<3).map { _ in fetch(&book, 10) }
        #expect(retried.compactMap(\.self).count == 2 && retried[2] == nil)
        #expect(!book.isDue(now: Self.time(10)))
        #expect(look(&book, 6, 10) == "pending")
        #expect(book.isDue(now: Self.time(10)))
        #expect(fetch(&book, 10) == 6)
        end(&book, 6, .schema(Self.schema), 10)
        #expect(book.turn(now: Self.time(10)) == .end)
        end(&book, retried[0]!, .failed("timeout", retryAfter: .zero), 10)
        #expect(fetch(&book, 10) != nil)
    }

    @Test func `leaves a registry that cannot be reached alone for longer each time`() throws {
        var book = Self.book()
        _ = look(&book, 1)
        _ = look(&book, 2)
        var now = Self.time(0)
        for attempt in 0..<12 {
            for number: UInt32 in 1...2 {
                _ = book.lookup(SchemaID(rawValue: number), now: now)
            }
            guard case .fetch(let schema) = book.turn(now: now) else {
                Issue.record("nothing is fetched at \(now)")
                return
            }
            // The schemas take turns.
            #expect(schema.rawValue == UInt32(attempt % 2 + 1))
            book.ended(schema, .unreachable("down"), now: now)
            guard case .wait(let until) = book.turn(now: now) else {
                Issue.record("nothing is waited for")
                return
            }
            let ceiling = Duration.seconds(min(60, 1 << min(attempt, 6)))
            #expect(until - now <= ceiling && until - now >= ceiling / 10)
            now = until
            let answer = book.lookup(SchemaID(rawValue: 2), now: now).0
            #expect(Self.words(answer) == "unreachable: down")
        }
        #expect(book.failure?.tries == 12 && book.failure?.since == Self.time(0))
        // Once it is back, nothing has to wait.
        guard case .fetch(let first) = book.turn(now: now) else {
            Issue.record("nothing is fetched")
            return
        }
        #expect(book.turn(now: now) == .end)
        book.ended(first, .failed("answers 500", retryAfter: .zero), now: now)
        #expect(book.failure == nil)
        #expect(book.isDue(now: now))
        #expect(Self.words(book.lookup(SchemaID(rawValue: 2), now: now).0) == "pending")
    }

    @Test func `fetchers that fail together have tried once`() {
        var book = Self.book()
        for number: UInt32 in 1...3 { _ = look(&book, number) }
        for number: UInt32 in 1...3 { #expect(fetch(&book) == number) }
        for number: UInt32 in 1...3 { end(&book, number, .unreachable("down")) }
        #expect(book.failure?.tries == 1 && book.wantedCount == 3)
    }

    @Test func `a schema that nobody asks for any more is forgotten`() {
        var book = Self.book { $0.wantedLife = .seconds(60) }
        _ = look(&book, 1)
        _ = look(&book, 2)
        for number: UInt32 in [1, 2] {
            #expect(fetch(&book) == number)
            end(&book, number, .failed("answers 403", retryAfter: .zero))
        }
        let fetched = fetches(&book, of: [2], in: 1..<600) { _, _ in
            .failed("answers 403", retryAfter: .zero)
        }
        #expect(fetched[1]!.allSatisfy { $0 < 60 } && fetched[2]!.last! > 500)
        #expect(book.wantedCount == 1)
        // One that is being fetched is not, so that its answer has a place.
        #expect(look(&book, 3, 600) == "pending")
        while let number = fetch(&book, 600) {
            if number == 3 { break }
            end(&book, number, .failed("answers 403", retryAfter: .zero), 600)
        }
        _ = book.turn(now: Self.time(2000))
        #expect(book.wantedCount == 1)
        end(&book, 3, .schema(Self.schema), 2000)
        #expect(look(&book, 3, 2000) == "known" && book.wantedCount == 0)
    }

    @Test func `gives the oldest schemas away when they are too many or too large`() {
        var few = Self.book { $0.schemasMax = 2 }
        var small = Self.book { $0.schemaBytesMax = 700 }
        for number: UInt32 in 1...3 {
            _ = look(&few, number)
            #expect(fetch(&few) == number)
            end(&few, number, .schema(Self.schema))
            _ = look(&small, number)
            #expect(fetch(&small) == number)
            end(&small, number, .schema(Self.schema))
        }
        #expect((1...3).map { look(&few, $0) } == ["pending", "known", "known"])
        #expect((1...3).map { look(&small, $0) } == ["pending", "known", "known"])
        #expect(small.knownBytes <= 700)
        var tiny = Self.book { $0.schemaBytesMax = 1 }
        _ = look(&tiny, 1)
        #expect(fetch(&tiny) == 1)
        end(&tiny, 1, .schema(Self.schema))
        #expect(look(&tiny, 1) == "known")
    }

    @Test func `remembers a bounded number of refusals, and wants a bounded number of schemas`() {
        var book = Self.book {
            $0.refusedMax = 2
            $0.wantedMax = 2
        }
        for number: UInt32 in 1...3 {
            _ = look(&book, number)
            #expect(fetch(&book) == number)
            end(&book, number, .unknown("no"))
        }
        #expect(look(&book, 3) == "unknown: no")
        #expect(look(&book, 1) == "pending" && book.wantedCount == 1)
        #expect(look(&book, 4) == "pending")
        #expect(look(&book, 5) == "unreachable: 2 other schemas are waited for")
        #expect(book.wantedCount == 2)
        #expect(fetch(&book) == 1)
        #expect(look(&book, 5) == "unreachable: 2 other schemas are waited for")
        end(&book, 1, .schema(Self.schema))
        #expect(look(&book, 5) == "pending" && book.wantedCount == 2)
    }
}
