// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `Notes about other restrictions` {
    private static let home = "com.example.Home"
    private static let app = Restriction.Scope.pushes(app: home, tokenClass: nil)
    private static let widgets = Restriction.Scope.pushes(app: nil, tokenClass: .widget)
    private static let both = Restriction.Scope.pushes(app: home, tokenClass: .widget)

    private func staying(
        _ action: Restriction.Action, _ scope: Restriction.Scope,
        beside configured: ConfiguredRestriction
    ) -> [String] {
        RestrictionNotes(action, of: scope).staying(of: [configured])
    }

    // MARK: What it replaces

    @Test func `it names who restricted, since when, until when and why`() {
        let at = WallTime(rfc3339: "2026-11-25T17:08:28.397Z")!
        var former = Restriction(.pause, by: "anna", at: at)
        #expect(
            RestrictionNotes.replaced(former)
                == "replaces: paused by anna since 2026-11-25T17:08:28.397Z, until it is resumed")
        former.action = .limit(perSecond: 20)
        former.until = WallTime(rfc3339: "2026-11-25T18:08:28.397Z")!
        former.reason = "slow backend"
        #expect(
            RestrictionNotes.replaced(former)
                == "replaces: limited to 20/s by anna since 2026-11-25T17:08:28.397Z, until "
                + "2026-11-25T18:08:28.397Z, \"slow backend\"")
    }

    @Test func `what somebody else wrote is one line without control characters`() {
        var former = Restriction(.drop, by: "a\nb", at: WallTime(milliseconds: 0))
        former.reason = "\u{1B}[2J"
        let line = RestrictionNotes.replaced(former)
        #expect(line.contains(#"by a\u{a}b since"#) && line.hasSuffix(#""\u{1b}[2J""#), "\(line)")
    }

    // MARK: What stays of other commands

    @Test func `it names the commands whose restriction counts before it`() {
        let at = WallTime(milliseconds: 0)
        let standing = [
            Self.widgets: Restriction(.drop, by: "anna", at: at),
            Self.app: Restriction(.pause, by: "ben", at: at),
            .topic("orders"): Restriction(.drop, by: "cy", at: at),
        ]
        let limit = RestrictionNotes(.limit(perSecond: 9), of: Self.both)
        #expect(
            limit.staying(besides: standing) == [
                "stays: app com.example.Home, paused by ben, which counts before this",
                "stays: class widget, dropped by anna, which counts before this",
            ])
        #expect(RestrictionNotes(.drop, of: Self.app).staying(besides: standing).isEmpty)
        #expect(RestrictionNotes(.pause, of: Self.app).staying(besides: standing).count == 1)
    }

    // MARK: What stays of the configuration

    @Test func `a stricter action of the configuration about the same counts before it`() {
        #expect(
            staying(.pause, Self.app, beside: ConfiguredRestriction(.drop, Self.app)) == [
                "stays: app com.example.Home, dropped by planning.restrictions, which counts "
                    + "before this"
            ])
        let limit = ConfiguredRestriction(.limit(perSecond: 5), Self.app)
        #expect(
            staying(.limit(perSecond: 9), Self.app, beside: limit) == [
                "stays: app com.example.Home, limited to 5/s by planning.restrictions, which "
                    + "counts before this"
            ])
    }

    @Test func `a milder or equal one about the same is there when the command's has ended`() {
        for action in [Restriction.Action.limit(perSecond: 5), .pause] {
            let lines = staying(
                .pause, Self.app, beside: ConfiguredRestriction(action, Self.app))
            #expect(lines.count == 1 && lines[0].hasSuffix("also when this has ended"), "\(lines)")
        }
    }

    @Test func `a stricter action about some of the same pushes counts before it`() {
        for scope in [Self.app, Self.widgets] {
            let lines = staying(
                .pause, Self.both, beside: ConfiguredRestriction(.drop, scope))
            #expect(lines.count == 1 && lines[0].hasSuffix("which counts before this"), "\(lines)")
        }
        let lines = staying(
            .limit(perSecond: 9), Self.app, beside: ConfiguredRestriction(.pause, Self.widgets))
        #expect(
            lines == [
                "stays: class widget, paused by planning.restrictions, which counts before this"
            ])
    }

    @Test func `of limits about different things the narrowest counts, so none is named`() {
        let limit = ConfiguredRestriction(.limit(perSecond: 5), Self.app)
        #expect(staying(.limit(perSecond: 9), Self.both, beside: limit).isEmpty)
    }

    @Test(arguments: [
        Restriction.Scope.pushes(app: "com.example.Garden", tokenClass: .widget),
        .pushes(app: nil, tokenClass: .control), .topic("lamplighter.events"),
        .subject(Array("door".utf8), app: "com.example.Home"),
    ])
    func `what is about something else is not named`(scope: Restriction.Scope) {
        #expect(staying(.pause, Self.both, beside: ConfiguredRestriction(.drop, scope)).isEmpty)
    }
}
