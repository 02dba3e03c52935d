// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

@Suite struct `A random life of an audience` {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `an audience agrees with dictionaries after every step`(seed: UInt64) {
        var run = ModelRun(seed: seed)
        for step in 0..<1_000 {
            run.step()
            run.audience.checkInvariants()
            if let difference = run.difference(thorough: step % 25 == 0) {
                Issue.record("seed \(seed), step \(step): \(difference)")
                return
            }
        }
        run.forgetAll()
        run.audience.checkInvariants()
        run.audience.reclaimKinds()
        run.audience.checkInvariants()
        let rest = run.audience.statistics
        #expect(rest.tokens + rest.subjects + rest.subscriptions + rest.registrations == 0)
        #expect(rest.kinds == 0)
        #expect(rest.suppressions == run.model.suppressions.count)
    }
}

private struct ModelRun: ~Copyable {
    var audience: Audience
    /// What the last step changed.
    private var changes = AudienceChanges()
    var model: AudienceModel
    private var dice: AudienceDice
    private var time: Int64 = 100
    /// Whether the last suppression or revocation said the same of itself as the model.
    private var suppressionAgrees = true

    init(seed: UInt64) {
        dice = AudienceDice(seed: seed)
        let lists = FurtherLists(rawValue: UInt16(seed % 4))
        audience = AudienceFixture.audience(lists)
        model = AudienceModel(lists)
    }

    /// Of a few installations, each with several handlers.
    private static func key(_ number: Int) -> String { "e/a/i\(number % 7)/h\(number)" }

    mutating func step() {
        clearReports()
        time += Int64(dice.below(3))
        switch dice.below(10) {
        case 0..<6: register()
        case 6: forget(Self.key(dice.below(30)))
        case 7, 8: judge()
        default: audience.reclaimRemoved()
        }
    }

    mutating func forgetAll() {
        for key in model.snapshots.keys {
            clearReports()
            forget(key)
        }
        audience.reclaimRemoved()
    }

    private mutating func clearReports() {
        // What a change frees may be reused by the very next one.
        if dice.below(2) == 0 { audience.reclaimRemoved() }
        if dice.below(4) == 0 { audience.reclaimKinds() }
        changes = AudienceChanges()
        model.clearReports()
    }

    private mutating func forget(_ key: String) {
        let known = model.snapshots[key] != nil
        model.apply(key, app: Fixture.home, environment: .production, at: 0, [])
        let removed = audience.changes(removing: key)
        changes = removed ?? AudienceChanges()
        suppressionAgrees = (removed != nil) == known
    }

    private mutating func register() {
        let number = dice.below(30)
        let key = Self.key(number)
        // An app and environment of its own for each key, as the key's text would have it.
        let app = number % 3 == 0 ? Fixture.mail : Fixture.home
        let environment = number % 5 == 0 ? PushEnvironment.development : .production
        var rows: [ShownRow] = []
        for _ in 0..<dice.below(dice.below(8) == 0 ? 60 : 6) {
            let classes: [TokenClass] = [.control, .widget, .device]
            rows.append(
                ShownRow(
                    "token-\(dice.below(40))", dice.below(9) == 0 ? "" : "s\(dice.below(25))",
                    kind: "kind-\(dice.below(dice.below(9) == 0 ? 90 : 3))", classes[dice.below(3)],
                    hearsChanges: dice.below(4) > 0))
        }
        // Clocks of registrars are not in order.
        let registeredAt = time - Int64(dice.below(5))
        model.apply(key, app: app, environment: environment, at: registeredAt, rows)
        let registration = Fixture.registration(
            key, app: app, environment: environment, at: registeredAt, rows)
        suppressionAgrees = audience.apply(registration, changes: &changes) == SetAside()
    }

    private mutating func judge() {
        let token = AudienceModel.Token(
            route: Fixture.route(Fixture.home, .control), name: "token-\(dice.below(40))")
        if dice.below(3) == 0 {
            suppressionAgrees =
                model.revokeSuppression(token)
                == audience.revokeSuppression(token.name, route: token.route)
        } else {
            let at = time - Int64(dice.below(6))
            suppressionAgrees =
                model.apply(suppressionAt: at, token)
                == audience.apply(suppressionAt: at, token.name, route: token.route)
        }
    }

    /// The first thing in which the audience and the model differ.
    func difference(thorough: Bool) -> String? {
        guard suppressionAgrees else { return "a call answered otherwise" }
        if reported() != model.subscribed { return "reports of subscriptions" }
        let removed = Set(changes.removedTokens.map { token($0) })
        guard removed == model.removed, removed.count == changes.removedTokens.count
        else { return "reports of removed tokens" }
        guard thorough else { return nil }
        return differingToken() ?? differingList()
    }

    private func reported() -> [AudienceModel.Shown: Int] {
        var reported: [AudienceModel.Shown: Int] = [:]
        for listed in changes.subscribed {
            let shown = AudienceModel.Shown(
                token: token(listed.entry.token), subject: audience.subjectName(listed.subject),
                kind: kind(of: listed.entry), scope: audience.scope(of: listed.subject))
            reported[shown, default: 0] += 1
        }
        return reported
    }

    private func kind(of entry: AudienceEntry) -> String {
        audience.name(
            of: entry.kind, in: Fixture.routing[audience.route(of: entry.token)].app)
    }

    private func token(_ token: TokenID) -> AudienceModel.Token {
        AudienceModel.Token(route: audience.route(of: token), name: audience.tokenName(token))
    }

    private func differingToken() -> String? {
        let holders = model.holders()
        guard audience.statistics.tokens == holders.count else { return "number of tokens" }
        for token in holders.keys {
            guard let row = audience.token(named: token.name, route: token.route) else {
                return "\(token) is lost"
            }
            if audience.registeredAt(of: row).milliseconds != model.registeredAt[token] {
                return "\(token) registered at \(audience.registeredAt(of: row))"
            }
            if audience.isSuppressed(row) != model.isSuppressed(token) {
                return "suppression of \(token)"
            }
        }
        return audience.statistics.suppressions == model.suppressions.count
            ? nil : "number of suppressions"
    }

    private func differingList() -> String? {
        for app in [Fixture.home, Fixture.mail] {
            let names =
                (0..<25).map { (ListScope.subject, "s\($0)") }
                + (0..<90).map { (.kindWide, "kind-\($0)") }
                + (0..<7).map { (.installation, "i\($0)") }
            for (scope, name) in names {
                let listed = list(scope, app, name)
                if listed != model.list(scope, app, name) {
                    return "\(scope) list of \(name): \(listed)"
                }
            }
        }
        return nil
    }

    private func list(_ scope: ListScope, _ app: AppID, _ name: String) -> [String] {
        guard let subject = audience.list(scope, named: name, app: app) else { return [] }
        return (0..<audience.count(subject)).map { position in
            let entry = audience.entry(subject, at: position)
            let route = audience.route(of: entry.token).rawValue
            let kind = kind(of: entry)
            return "\(route) \(audience.tokenName(entry.token)) \(kind) \(entry.hearsChanges)"
        }.sorted()
    }
}
