// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel

/// What an audience should be, kept in dictionaries and recomputed the slow way.
struct AudienceModel {
    struct Token: Hashable {
        var route: RouteID
        var name: String
    }

    /// What makes a subscription the same one in the next snapshot.
    struct Shown: Hashable {
        var token: Token
        /// The subject, or the name of another list.
        var subject: String
        var kind: String
        var scope = ListScope.subject
    }

    struct Snapshot {
        var app: AppID
        var rows: [Shown: Bool]
    }

    let furtherLists: FurtherLists
    private(set) var snapshots: [String: Snapshot] = [:]
    private(set) var registeredAt: [Token: Int64] = [:]
    private(set) var suppressions: [Token: Int64] = [:]
    /// What the last step should have reported.
    private(set) var subscribed: [Shown: Int] = [:]
    private(set) var removed: Set<Token> = []

    init(_ furtherLists: FurtherLists) { self.furtherLists = furtherLists }

    /// Where a row stands: in the list of its subject, and in further ones.
    private func names(of row: ShownRow, _ token: Token, key: String) -> [Shown] {
        var names = [Shown(token: token, subject: row.subject, kind: row.kind)]
        if furtherLists.contains(.kindWide), row.tokenClass != .device {
            names.append(
                Shown(token: token, subject: row.kind, kind: row.kind, scope: .kindWide))
        }
        if furtherLists.contains(.installations) {
            let installation = String(key.split(separator: "/")[2])
            names.append(
                Shown(
                    token: token, subject: installation, kind: row.kind, scope: .installation))
        }
        return names
    }

    mutating func apply(
        _ key: String, app: AppID, environment: PushEnvironment, at time: Int64, _ rows: [ShownRow]
    ) {
        let before = holders()
        var shown: [Shown: Bool] = [:]
        var lifted: Set<Token> = []
        for row in rows {
            let route = AudienceFixture.route(app, row.tokenClass, environment)
            let token = Token(route: route, name: row.token)
            let wasSuppressed = isSuppressed(token)
            registeredAt[token] = max(registeredAt[token] ?? .min, time)
            if wasSuppressed, !isSuppressed(token) { lifted.insert(token) }
            for name in names(of: row, token, key: key) {
                shown[name] = shown[name] == true || row.hearsChanges
            }
        }
        let old = snapshots[key]?.rows ?? [:]
        snapshots[key] = shown.isEmpty ? nil : Snapshot(app: app, rows: shown)
        subscribed = [:]
        for (name, hears) in shown where name.subject != "" {
            // What a token shows still, it was sent nothing of while it was suppressed.
            if old[name] == nil || (hears && old[name] == false) || lifted.contains(name.token) {
                subscribed[name] = 1
            }
        }
        removed = Set(before.keys).subtracting(holders().keys)
        for token in removed { registeredAt[token] = nil }
    }

    mutating func clearReports() {
        subscribed = [:]
        removed = []
    }

    mutating func apply(suppressionAt time: Int64, _ token: Token) -> Bool {
        guard time > suppressions[token] ?? .min else { return false }
        suppressions[token] = time
        return true
    }

    mutating func revokeSuppression(_ token: Token) -> Bool {
        suppressions.removeValue(forKey: token) != nil
    }

    /// Every held token, with the number of rows that hold it.
    func holders() -> [Token: Int] {
        var holders: [Token: Int] = [:]
        for snapshot in snapshots.values {
            for shown in snapshot.rows.keys { holders[shown.token, default: 0] += 1 }
        }
        return holders
    }

    /// The lines of a list in any order: `route token kind hears`.
    func list(_ scope: ListScope, _ app: AppID, _ subject: String) -> [String] {
        var lines: [String] = []
        for snapshot in snapshots.values where snapshot.app == app {
            for (shown, hears) in snapshot.rows
            where shown.subject == subject && shown.scope == scope {
                lines.append(
                    "\(shown.token.route.rawValue) \(shown.token.name) \(shown.kind) \(hears)")
            }
        }
        return lines.sorted()
    }

    func isSuppressed(_ token: Token) -> Bool {
        guard let suppression = suppressions[token], let registered = registeredAt[token] else {
            return false
        }
        return suppression >= registered
    }
}

/// Seeded random numbers, so that a failure can be repeated.
struct AudienceDice {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func below(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }
}
