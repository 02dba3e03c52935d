// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel

/// Two apps in both environments, and short ways to say what a registration shows.
enum AudienceFixture {
    static let home = AppID(rawValue: 0)
    static let mail = AppID(rawValue: 1)

    static let routing: RoutingTable = {
        var routing = RoutingTable()
        routing.add(
            credential: "team", apps: ["com.example.Home", "com.example.Mail"],
            environments: PushEnvironment.allCases)
        return routing
    }()

    static func audience(_ furtherLists: FurtherLists = []) -> Audience {
        Audience(routing: routing, hashSeed: 0x0DD5_EED5, furtherLists: furtherLists)
    }

    static func route(
        _ app: AppID = home, _ tokenClass: TokenClass = .control,
        _ environment: PushEnvironment = .production
    ) -> RouteID {
        routing.route(environment: environment, app: app, tokenClass: tokenClass)!
    }

    static func registration(
        _ key: String, app: AppID = home, environment: PushEnvironment = .production,
        at milliseconds: Int64 = 1_000, _ rows: [ShownRow]
    ) -> Registration {
        var registration = Registration()
        registration.environment = environment
        registration.app = app
        registration.key = Array(key.utf8)
        registration.registeredAt = WallTime(milliseconds: milliseconds)
        for row in rows {
            registration.rows.append(
                Registration.Row(
                    tokenClass: row.tokenClass, hearsChanges: row.hearsChanges,
                    token: Array(row.token.utf8).withUnsafeBytes { registration.append($0) },
                    kind: Array(row.kind.utf8).withUnsafeBytes { registration.append($0) },
                    subject: Array(row.subject.utf8).withUnsafeBytes { registration.append($0) }))
        }
        return registration
    }
}

/// One row of a registration; texts stand for token and subject bytes.
struct ShownRow: Hashable {
    var token: String
    var subject: String
    var kind = "door"
    var tokenClass = TokenClass.control
    var hearsChanges = true

    init(
        _ token: String, _ subject: String, kind: String = "door",
        _ tokenClass: TokenClass = .control, hearsChanges: Bool = true
    ) {
        self.token = token
        self.subject = subject
        self.kind = kind
        self.tokenClass = tokenClass
        self.hearsChanges = hearsChanges
    }
}

extension Audience {
    func subject(named name: String, app: AppID = AudienceFixture.home) -> SubjectID? {
        Array(name.utf8).withUnsafeBytes { subject(app, $0) }
    }

    func list(
        _ scope: ListScope, named name: String, app: AppID = AudienceFixture.home
    ) -> SubjectID? {
        Array(name.utf8).withUnsafeBytes { name in
            list(scope, app, name, hash: hash(app, name, scope))
        }
    }

    func token(named name: String, route: RouteID = AudienceFixture.route()) -> TokenID? {
        Array(name.utf8).withUnsafeBytes { token(route, $0) }
    }

    func tokenName(_ token: TokenID) -> String {
        String(decoding: tokenBytes(of: token), as: UTF8.self)
    }

    func subjectName(_ subject: SubjectID) -> String {
        String(decoding: subjectBytes(of: subject), as: UTF8.self)
    }

    /// The tokens in a list, in its order.
    func shows(
        _ name: String, _ scope: ListScope = .subject, app: AppID = AudienceFixture.home
    ) -> [String] {
        guard let subject = list(scope, named: name, app: app) else { return [] }
        return (0..<count(subject)).map { tokenName(entry(subject, at: $0).token) }
    }

    /// `token subject` of each reported subscription.
    func subscribedNames(_ changes: AudienceChanges) -> [String] {
        var names: [String] = []
        for listed in changes.subscribed {
            names.append("\(tokenName(listed.entry.token)) \(subjectName(listed.subject))")
        }
        return names
    }

    /// Applies a registration, whatever it changes.
    @discardableResult
    mutating func apply(_ registration: borrowing Registration) -> SetAside {
        var changes = AudienceChanges()
        return apply(registration, changes: &changes)
    }

    /// What applying the registration changes.
    mutating func changes(applying registration: borrowing Registration) -> AudienceChanges {
        var changes = AudienceChanges()
        _ = apply(registration, changes: &changes)
        return changes
    }

    /// What removing the registration changes; nil when it is not known.
    mutating func changes(removing key: String) -> AudienceChanges? {
        var changes = AudienceChanges()
        let isKnown = Array(key.utf8).withUnsafeBytes { remove(key: $0, changes: &changes) }
        return isKnown ? changes : nil
    }

    mutating func apply(
        suppressionAt milliseconds: Int64, _ token: String, route: RouteID = AudienceFixture.route()
    ) -> Bool {
        let suppression = Suppression(
            status: 410, reason: "Unregistered", apnsTimestamp: nil,
            registeredAt: WallTime(milliseconds: milliseconds))
        return Array(token.utf8).withUnsafeBytes {
            apply(
                suppression: suppression, recordedAt: WallTime(milliseconds: 7_000), route: route,
                token: $0)
        }
    }

    mutating func revokeSuppression(
        _ token: String, route: RouteID = AudienceFixture.route()
    ) -> Bool {
        Array(token.utf8).withUnsafeBytes { revokeSuppression(route: route, token: $0) }
    }
}
