// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordSchemas
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
        Self.words(book.lookup(SchemaID(rawValue: number), now: Self.time(seconds)))
    }

    private func end(
        _ book: inout SchemaBook, _ number: UInt32, _ outcome: SchemaBook.Outcome,
        _ seconds: Int = 0
    ) {
        book.ended(SchemaID(rawValue: number), outcome, now: Self.time(seconds))
    }

    @Test func `asks for schemas in the order in which they were wanted, each once`() {
        var book = Self.book()
        #expect(book.next == nil)
        for number: UInt32 in [3, 1, 3] { #expect(look(&book, number) == "pending") }
        #expect(book.next?.schema.rawValue == 3)
        end(&book, 3, .schema(Self.schema))
        #expect(look(&book, 3) == "known")
        #expect(book.next?.schema.rawValue == 1)
        end(&book, 1, .unusable("it is odd"))
        #expect(look(&book, 1) == "unusable: it is odd")
        #expect(book.next == nil && book.wantedCount == 0)
    }

    @Test func `believes for a while that there is no such schema, and then asks again`() {
        var book = Self.book { $0.unknownLife = .seconds(60) }
        _ = look(&book, 1)
        end(&book, 1, .unknown("not there"), 100)
        #expect(look(&book, 1, 159) == "unknown: not there")
        #expect(book.next == nil)
        #expect(look(&book, 1, 160) == "pending")
        end(&book, 1, .schema(Self.schema), 161)
        #expect(look(&book, 1, 1000) == "known")
    }

    @Test func `leaves a registry without an answer alone for longer each time`() throws {
        var book = Self.book()
        _ = look(&book, 1)
        var now = Self.time(0)
        for attempt in 0..<12 {
            book.ended(SchemaID(rawValue: 1), .unreachable("down", retryAfter: .zero), now: now)
            let wait = try #require(book.next).at - now
            let ceiling = Duration.seconds(min(60, 1 << min(attempt, 6)))
            #expect(wait <= ceiling && wait >= ceiling / 10)
            now = now + wait
            #expect(Self.words(book.lookup(SchemaID(rawValue: 2), now: now)) == "unreachable: down")
        }
        #expect(book.failure?.tries == 12 && book.failure?.since == Self.time(0))
        book.ended(SchemaID(rawValue: 1), .unreachable("busy", retryAfter: .seconds(600)), now: now)
        #expect(try #require(book.next).at - now == .seconds(600))
        book.ended(SchemaID(rawValue: 1), .schema(Self.schema), now: now)
        #expect(book.failure == nil)
        #expect(Self.words(book.lookup(SchemaID(rawValue: 2), now: now)) == "pending")
        #expect(try #require(book.next).at == now)
    }

    @Test func `gives the oldest schemas away when they are too many or too large`() {
        var few = Self.book { $0.schemasMax = 2 }
        var small = Self.book { $0.schemaBytesMax = 700 }
        for number: UInt32 in 1...3 {
            _ = look(&few, number)
            end(&few, number, .schema(Self.schema))
            _ = look(&small, number)
            end(&small, number, .schema(Self.schema))
        }
        #expect((1...3).map { look(&few, $0) } == ["pending", "known", "known"])
        #expect((1...3).map { look(&small, $0) } == ["pending", "known", "known"])
        #expect(small.knownBytes <= 700)
        var tiny = Self.book { $0.schemaBytesMax = 1 }
        _ = look(&tiny, 1)
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
            end(&book, number, .unknown("no"))
        }
        #expect(look(&book, 3) == "unknown: no")
        #expect(look(&book, 1) == "pending" && book.wantedCount == 1)
        #expect(look(&book, 4) == "pending" && look(&book, 5) == "pending")
        #expect(book.wantedCount == 2)
        end(&book, 1, .schema(Self.schema))
        #expect(look(&book, 5) == "pending" && book.wantedCount == 2)
    }
}
