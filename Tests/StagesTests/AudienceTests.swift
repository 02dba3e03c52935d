// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

@Suite struct `An audience` {
    @Test func `an audience lists every token that shows a subject`() {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t1", "door-1"), ShownRow("t2", "door-2")]))
        audience.apply(Fixture.registration("b", [ShownRow("t3", "door-1")]))
        audience.checkInvariants()
        #expect(audience.shows("door-1") == ["t1", "t3"])
        #expect(audience.shows("door-2") == ["t2"])
        #expect(audience.shows("door-3") == [])
        #expect(audience.shows("Door-1") == [])
        #expect(audience.statistics.subscriptions == 3)
    }

    /// What is kept for each token elsewhere is found by the position.
    @Test func `no two tokens of an audience have the same position, and few lie idle`() {
        var audience = Fixture.audience()
        for number in 0..<2000 {
            // Of 4 bytes to 67, and those of 32 bytes most of all.
            let length = number % 2 == 0 ? 32 : 4 + number % 64
            let name = "\(number)".padding(to: length)
            audience.apply(Fixture.registration("i\(number)", [ShownRow(name, "door")]))
        }
        let list = audience.subject(named: "door", app: Fixture.home)!
        let positions = (0..<audience.count(list)).map {
            audience.entry(list, at: $0).token.position
        }
        #expect(Set(positions).count == positions.count && positions.count > 1900)
        #expect(positions.max()! < positions.count * 2)
    }

    @Test func `an audience keeps the subjects of two apps apart`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", app: Fixture.home, [ShownRow("t1", "door-1")]))
        audience.apply(Fixture.registration("b", app: Fixture.mail, [ShownRow("t1", "door-1")]))
        #expect(audience.shows("door-1", app: Fixture.home) == ["t1"])
        let other = audience.subject(named: "door-1", app: Fixture.mail)!
        let token = audience.entry(other, at: 0).token
        #expect(audience.route(of: token) == Fixture.route(Fixture.mail))
        #expect(audience.statistics.tokens == 2)
        let counts = audience.statistics.tokensOfRoutes
        for app in [Fixture.home, Fixture.mail] {
            #expect(counts[Int(Fixture.route(app).rawValue)] == 1)
        }
        #expect(counts.reduce(0, +) == 2)
    }

    @Test func `an audience replaces a registration by its next snapshot`() {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t1", "door-1"), ShownRow("t2", "door-2")]))
        let changes = audience.changes(
            applying: Fixture.registration(
                "a", [ShownRow("t1", "door-1"), ShownRow("t1", "door-3")]))
        audience.checkInvariants()
        #expect(audience.shows("door-1") == ["t1"])
        #expect(audience.shows("door-2") == [])
        #expect(audience.shows("door-3") == ["t1"])
        let removed = changes.removedTokens.map { audience.tokenName($0) }
        #expect(audience.subscribedNames(changes) == ["t1 door-3"])
        #expect(removed == ["t2"])
    }

    @Test func `an audience never lets two handlers of one installation touch each other's rows`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("i/controls", [ShownRow("t1", "door-1")]))
        audience.apply(Fixture.registration("i/widgets", [ShownRow("w1", "door-1", .widget)]))
        audience.apply(Fixture.registration("i/controls", []))
        audience.checkInvariants()
        #expect(audience.shows("door-1") == ["w1"])
        #expect(audience.statistics.registrations == 1)
    }

    @Test func `an audience reports nothing for a registration repeated word for word`() {
        var audience = Fixture.audience()
        let rows = [ShownRow("t1", "door-1"), ShownRow("t1", "door-2"), ShownRow("t2", "door-1")]
        audience.apply(Fixture.registration("a", at: 1, rows))
        let changes = audience.changes(
            applying: Fixture.registration("a", at: 2, rows.reversed()))
        #expect(changes.isEmpty)
        #expect(audience.registeredAt(of: audience.token(named: "t1")!).milliseconds == 2)
    }

    @Test func `an audience counts a subject once for a token that names it twice`() {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t1", "door-1"), ShownRow("t1", "door-1")]))
        #expect(audience.shows("door-1") == ["t1"])
        audience.checkInvariants()
    }

    @Test func `an audience keeps a token that two registrations hold until both let go`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 5, [ShownRow("t1", "door-1")]))
        audience.apply(Fixture.registration("b", at: 3, [ShownRow("t1", "door-2")]))
        let token = audience.token(named: "t1")!
        #expect(audience.registeredAt(of: token).milliseconds == 5)
        let first = audience.changes(removing: "a")
        #expect(first?.removedTokens == [])
        #expect(audience.isRegistered(token) == true)
        let second = audience.changes(removing: "b")
        #expect(second?.removedTokens == [token])
        #expect(audience.isRegistered(token) == false)
        let third = audience.changes(removing: "b")
        #expect(third == nil)
    }

    @Test func `an audience keeps a removed token's row readable until it is reclaimed`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        audience.setPending(token, 7)
        audience.apply(Fixture.registration("a", []))
        #expect(audience.tokenName(token) == "t1")
        #expect(audience.pending(token) == 7)
        audience.checkInvariants()
        audience.reclaimRemoved()
        audience.checkInvariants()
        #expect(audience.token(named: "t1") == nil)
        audience.apply(Fixture.registration("b", [ShownRow("t2", "door-1")]))
        #expect(audience.pending(audience.token(named: "t2")!) == 0)
    }

    @Test func `an audience gives a token that returns before it is reclaimed its row back`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        for _ in 0..<2 {
            let changes = audience.changes(applying: Fixture.registration("a", []))
            #expect(changes.removedTokens == [token])
            audience.apply(Fixture.registration("a", [ShownRow("t1", "door-1")]))
        }
        audience.reclaimRemoved()
        audience.checkInvariants()
        #expect(audience.token(named: "t1") == token)
        #expect(audience.shows("door-1") == ["t1"])
    }

    @Test func `an audience holds a token that shows no subject`() {
        var audience = Fixture.audience()
        let added = audience.changes(
            applying: Fixture.registration("a", [ShownRow("t1", "", .device)]))
        audience.checkInvariants()
        #expect(audience.token(named: "t1", route: Fixture.route(Fixture.home, .device)) != nil)
        #expect(added.subscribed == [])
        #expect(audience.statistics.subscriptions == 0)
        let removed = audience.changes(applying: Fixture.registration("a", []))
        #expect(removed.removedTokens.count == 1)
    }

    @Test func `an audience reports a device token that begins to hear changes`() {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t1", "door-1", .device, hearsChanges: false)]))
        let subject = audience.subject(named: "door-1")!
        #expect(!audience.entry(subject, at: 0).hearsChanges)
        let changes = audience.changes(
            applying: Fixture.registration(
                "a", [ShownRow("t1", "door-1", .device, hearsChanges: true)]))
        #expect(audience.entry(subject, at: 0).hearsChanges)
        #expect(audience.subscribedNames(changes) == ["t1 door-1"])
    }

    @Test func `an audience sets aside rows that it cannot take, and takes the others`() {
        var audience = Fixture.audience()
        let setAside = audience.apply(
            Fixture.registration(
                "a",
                [
                    ShownRow("", "door-1"),
                    ShownRow(String(repeating: "t", count: 513), "door-1"),
                    ShownRow("t1", String(repeating: "s", count: 257)),
                    ShownRow("t1", "door-1", kind: String(repeating: "k", count: 257)),
                    ShownRow(
                        String(repeating: "t", count: 512), String(repeating: "s", count: 256),
                        kind: String(repeating: "k", count: 256)),
                ]))
        #expect(setAside.outOfBounds == 4)
        #expect(audience.statistics.subscriptions == 1)
        audience.checkInvariants()

        let unknown = AppID(rawValue: 9)
        let unrouted = audience.apply(
            Fixture.registration("b", app: unknown, [ShownRow("t1", "door-1")]))
        #expect(unrouted.unroutable == 1)
        #expect(audience.statistics.registrations == 1)
    }

    @Test func `an audience takes rows without their kind when there are too many kinds`() {
        var audience = Fixture.audience(.kindWide)
        let kinds = Audience.kindsMax
        let rows = (0..<kinds).map { ShownRow("t1", "door-1", kind: "kind-\($0)") }
        #expect(audience.apply(Fixture.registration("a", rows)) == SetAside())
        var full = audience.appsOutOfKinds
        #expect(full.isEmpty, "none went without")
        let more = Fixture.registration("b", [ShownRow("t2", "door-2", kind: "one-more")])
        #expect(audience.apply(more).withoutKind == 1)
        #expect(audience.statistics.kinds == kinds)
        #expect(audience.kind(Fixture.home, named: "one-more") == nil)
        #expect(audience.entry(audience.subject(named: "door-2")!, at: 0).kind == .none)
        full = audience.appsOutOfKinds
        #expect(full.map(\.app) == [Fixture.home] && full.map(\.refused) == [1])
        audience.checkInvariants()

        // Of another app, none is missing.
        let other = Fixture.registration(
            "c", app: Fixture.mail, [ShownRow("t3", "inbox", kind: "one-more")])
        #expect(audience.apply(other) == SetAside())
        #expect(audience.kind(Fixture.mail, named: "one-more") != nil)
        #expect(audience.kind(Fixture.home, named: "one-more") == nil)

        // What goes makes room.
        audience.apply(Fixture.registration("a", Array(rows.dropFirst())))
        #expect(audience.apply(more).withoutKind == 1, "an event may still name it by number")
        #expect(audience.statistics.kinds == kinds + 1)
        audience.reclaimKinds()
        full = audience.appsOutOfKinds
        #expect(full.isEmpty && audience.statistics.kinds == kinds)
        #expect(audience.apply(more) == SetAside())
        #expect(audience.kind(Fixture.home, named: "one-more") != nil)
        #expect(audience.kind(Fixture.home, named: "kind-0") == nil)
        audience.checkInvariants()
    }

    @Test func `an audience keeps a kind while one subscription shows it`() {
        var audience = Fixture.audience(.kindWide)
        for key in ["a", "b"] {
            audience.apply(Fixture.registration(key, [ShownRow("t-" + key, "door-1")]))
        }
        let kind = audience.kind(Fixture.home, named: "door")
        audience.apply(Fixture.registration("a", [ShownRow("t-a", "door-1", kind: "lamp")]))
        audience.reclaimKinds()
        #expect(kind != nil && audience.kind(Fixture.home, named: "door") == kind)
        _ = audience.changes(removing: "b")
        #expect(audience.statistics.kinds == 2)
        audience.reclaimKinds()
        #expect(audience.kind(Fixture.home, named: "door") == nil)
        #expect(audience.kind(Fixture.home, named: "lamp") != kind)
        audience.checkInvariants()
        // It comes back before its number has gone.
        _ = audience.changes(removing: "a")
        audience.apply(Fixture.registration("c", [ShownRow("t-c", "door-1", kind: "lamp")]))
        audience.reclaimKinds()
        #expect(audience.kind(Fixture.home, named: "lamp") != nil)
        audience.checkInvariants()
    }
}

extension String {
    fileprivate func padding(to length: Int) -> String {
        String((self + String(repeating: "x", count: max(0, length - count))).prefix(length))
    }
}
