// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `The feed of the audience` {
    // MARK: Registrations

    @Test func `the feed applies registrations, and says what the last of them has changed`() {
        let fixture = PartsFixture()
        fixture.feedRegistration("A", [.control([1], shows: ["a", "b", "c"])])
        let first = fixture.changes
        fixture.feedRegistration("B", [.control([2], shows: ["a"])])
        let second = fixture.changes
        #expect(first.subscribed.count == 3 && second.subscribed.count == 1)
        #expect(fixture.shows("a") == [[1], [2]] && fixture.shows("b") == [[1]])
        #expect(fixture.counters.registrationsRead == 2)
    }

    @Test func `the feed removes a registration by its tombstone, once`() {
        let fixture = PartsFixture()
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        fixture.feedRegistration("B", [.control([2], shows: ["a"])])
        fixture.feedRegistration("A")
        let removed = fixture.changes.removedTokens
        #expect(removed.count == 1 && removed.first == fixture.token([1]))
        #expect(fixture.shows("a") == [[2]])
        fixture.feedRegistration("A")
        #expect(fixture.changes.isEmpty && fixture.shows("a") == [[2]])
        #expect(fixture.counters.registrationsRead == 4)
    }

    @Test(arguments: ["the key", "the value", "an empty value", "another app"])
    func `the feed skips an unreadable registration, counts it, and keeps the one before`(
        unreadable: String
    ) {
        let fixture = PartsFixture()
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        var draft = fixture.draft("A", [.control([2], shows: ["b"])])
        if unreadable == "another app" { draft.app = "com.example.Other" }
        let problem = fixture.feedRegistration(
            key: unreadable == "the key" ? [1] : RegistrationEncoder.key(draft),
            value: unreadable == "the value"
                ? Array("{".utf8)
                : unreadable == "an empty value" ? [] : RegistrationEncoder.value(draft))
        #expect(problem != nil)
        #expect(fixture.shows("a") == [[1]] && fixture.shows("b") == [])
        let counters = fixture.counters
        #expect(counters.registrationsUnreadable == 1 && counters.registrationsRead == 1)
    }

    @Test func `the feed counts rows that are set aside apart from those without their kind`() {
        let fixture = PartsFixture()
        var setAside = SetAside()
        setAside.unroutable = 1
        setAside.outOfBounds = 2
        setAside.withoutKind = 4
        for _ in 0..<2 { fixture.state.add(setAside) }
        #expect(fixture.counters.registrationRowsSetAside == 6)
        #expect(fixture.counters.registrationRowsWithoutKind == 8)
    }

    // MARK: Suppressions

    @Test func `the feed lets no older suppression take the place of a newer one`() {
        let fixture = PartsFixture()
        let now = fixture.now.wall
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        fixture.feedSuppression(of: [1], registeredAt: now + .seconds(-1))
        #expect(!fixture.isSuppressed([1]), "it was registered after that")
        fixture.feedSuppression(of: [1], registeredAt: now)
        fixture.feedSuppression(of: [1], registeredAt: now + .seconds(-1))
        #expect(fixture.isSuppressed([1]) && fixture.counters.suppressionsRead == 3)
    }

    @Test func `the feed revokes a suppression by its tombstone, known or not`() {
        let fixture = PartsFixture()
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        fixture.feedSuppression(of: [1], registeredAt: fixture.now.wall)
        #expect(fixture.isSuppressed([1]))
        for token in [[1], [2]] as [[UInt8]] {
            let problem = fixture.feedSuppression(of: token, registeredAt: nil)
            #expect(problem == nil && !fixture.isSuppressed(token))
        }
        #expect(fixture.counters.suppressionsRead == 3)
    }

    @Test func `the feed takes a suppression before its registration, and reports its end`() {
        let fixture = PartsFixture()
        fixture.feedSuppression(of: [1], registeredAt: fixture.now.wall)
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        #expect(fixture.isSuppressed([1]))
        fixture.pass(.seconds(1))
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        #expect(!fixture.isSuppressed([1]))
        #expect(fixture.changes.subscribed.map(\.subject) == [fixture.subject("a")!])
    }

    @Test(arguments: [true, false])
    func `the feed skips an unreadable suppression, counts it, and suppresses nothing`(
        isKeyReadable: Bool
    ) {
        let fixture = PartsFixture()
        fixture.feedRegistration("A", [.control([1], shows: ["a"])])
        let key = isKeyReadable ? fixture.key(of: [1]) : Array("production/1".utf8)
        let problem = fixture.feedSuppression(key: key, value: Array(#"{"v":1}"#.utf8))
        #expect(problem != nil && !fixture.isSuppressed([1]))
        let counters = fixture.counters
        #expect(counters.suppressionsUnreadable == 1 && counters.suppressionsRead == 0)
    }
}
