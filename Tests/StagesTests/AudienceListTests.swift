// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

@Suite struct `An audience's lists` {
    @Test func `an audience's lists tell kinds apart by their interned name`() {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration(
                "a",
                [ShownRow("t1", "door-1", kind: "door"), ShownRow("t1", "door-1", kind: "lock")]))
        let subject = audience.subject(named: "door-1")!
        let kinds = (0..<audience.count(subject)).map { audience.entry(subject, at: $0).kind }
        #expect(kinds == ["door", "lock"].map { audience.kind(Fixture.home, named: $0)! })
        #expect(audience.name(of: kinds[1], in: Fixture.home) == "lock")
        #expect(audience.kind(Fixture.home, named: "lamp") == nil)
        #expect(audience.statistics.tokens == 1)
    }

    @Test func `an audience's lists grow and shrink through every size`() {
        var audience = Fixture.audience()
        for count in 0..<600 {
            audience.apply(Fixture.registration("r\(count)", [ShownRow("t\(count)", "door-1")]))
        }
        audience.checkInvariants()
        #expect(audience.shows("door-1") == (0..<600).map { "t\($0)" })
        for count in 0..<599 {
            audience.apply(Fixture.registration("r\(count)", []))
            if count % 20 == 0 { audience.checkInvariants() }
        }
        audience.checkInvariants()
        #expect(audience.shows("door-1") == ["t599"])
    }

    @Test func `an audience's lists of a kind hold each control and widget once, where allowed`() {
        var audience = Fixture.audience(.kindWide)
        audience.apply(
            Fixture.registration(
                "a",
                [
                    ShownRow("t1", "door-1"), ShownRow("t1", "door-2"), ShownRow("t2", ""),
                    ShownRow("t3", "door-1", kind: "lamp"), ShownRow("w1", "door-1", .widget),
                ]))
        audience.checkInvariants()
        #expect(audience.shows("door", .kindWide).sorted() == ["t1", "t2", "w1"])
        #expect(Set(audience.kindNames(of: Fixture.home)) == ["door", "lamp"])
        #expect(audience.list(.kindWide, named: "door", app: Fixture.mail) == nil)
        #expect(audience.subject(named: "door") == nil)
        #expect(audience.statistics.subscriptions == 4)

        audience.apply(Fixture.registration("a", []))
        #expect(audience.list(.kindWide, named: "door") == nil)
        audience.checkInvariants()
    }

    @Test func `an audience's lists of kinds are not kept where not allowed`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", [ShownRow("t1", "door-1")]))
        #expect(audience.list(.kindWide, named: "door") == nil)
    }

    @Test func `an audience's lists of installations hold what is theirs but channels`() {
        var audience = Fixture.audience(.installations)
        audience.apply(
            Fixture.registration(
                "production/com.example.Home/i1/Controls",
                [
                    ShownRow("t1", "door-1"), ShownRow("t1", "door-2"),
                    ShownRow("t1", "door-1", kind: "lamp"), ShownRow("c1", "door-1", .channel),
                ]))
        audience.apply(
            Fixture.registration(
                "production/com.example.Home/i1/Device",
                [ShownRow("d1", "", kind: "", .device, hearsChanges: false)]))
        audience.apply(
            Fixture.registration(
                "production/com.example.Home/i2/Controls", [ShownRow("t2", "i1")]))
        audience.checkInvariants()
        #expect(audience.shows("i1", .installation).sorted() == ["d1", "t1", "t1"], "once a kind")
        #expect(audience.shows("i2", .installation) == ["t2"])
        #expect(audience.shows("i1") == ["t2"], "a subject of that name is another list")
        #expect(audience.list(.kindWide, named: "i1") == nil)
        #expect(audience.list(.installation, named: "i1", app: Fixture.mail) == nil)
        #expect(audience.statistics.subscriptions == 5 && audience.statistics.subjects == 3)

        // The token is another installation's from now on.
        let (token, i1) = (audience.token(named: "t1")!, Array("i1".utf8))
        func isOfFirst(_ audience: borrowing Audience) -> Bool {
            i1.withUnsafeBytes { audience.mayShow(token, .installation, $0) }
        }
        let isItsOwn = isOfFirst(audience)
        audience.apply(
            Fixture.registration(
                "production/com.example.Home/i2/Controls",
                [ShownRow("t1", "door-1"), ShownRow("t2", "i1")]))
        _ = audience.changes(removing: "production/com.example.Home/i1/Controls")
        let isItsOwnStill = isOfFirst(audience)
        #expect(isItsOwn && !isItsOwnStill)
        _ = audience.changes(removing: "production/com.example.Home/i1/Device")
        #expect(audience.list(.installation, named: "i1") == nil)
        audience.checkInvariants()

        var without = Fixture.audience(.kindWide)
        without.apply(Fixture.registration("production/a/i1/h", [ShownRow("t1", "door-1")]))
        #expect(without.list(.installation, named: "i1") == nil)
    }

    @Test func `an audience's lists report a moved entry only while a cursor goes through them`() {
        var audience = Fixture.audience()
        for name in ["1", "2", "3", "4"] {
            audience.apply(Fixture.registration(name, [ShownRow("t" + name, "door-1")]))
        }
        var changes = audience.changes(applying: Fixture.registration("1", []))
        #expect(audience.shows("door-1") == ["t4", "t2", "t3"])
        #expect(changes.moved == [])

        let subject = audience.subject(named: "door-1")!
        audience.setCursor(subject, true)
        changes = audience.changes(applying: Fixture.registration("4", []))
        let moved = changes.moved.map { audience.tokenName($0.entry.token) }
        #expect(audience.shows("door-1") == ["t3", "t2"])
        #expect(moved == ["t3"])
        // The last entry leaves no hole.
        changes = audience.changes(applying: Fixture.registration("2", []))
        #expect(changes.moved == [])
        audience.checkInvariants()
    }

    @Test func `an audience's lists outlive their last entry while a cursor goes through them`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", [ShownRow("t1", "door-1")]))
        let subject = audience.subject(named: "door-1")!
        audience.setCursor(subject, true)
        audience.apply(Fixture.registration("a", []))
        audience.checkInvariants()
        #expect(audience.count(subject) == 0)
        #expect(audience.subjectName(subject) == "door-1")
        audience.apply(Fixture.registration("b", [ShownRow("t2", "door-1")]))
        #expect(audience.subject(named: "door-1") == subject)
        audience.apply(Fixture.registration("b", []))
        audience.setCursor(subject, false)
        #expect(audience.subject(named: "door-1") == nil)
        audience.checkInvariants()
    }
}
