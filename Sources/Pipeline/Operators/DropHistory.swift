// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The drops that this worker follows or has followed, so that a push that was dropped can be
/// explained after the drop was lifted.
struct DropHistory: Sendable {
    struct Entry: Sendable {
        let scope: Restriction.Scope
        let restriction: Restriction
        /// When this worker began to follow it, by its own clock.
        let since: WallTime
        /// Nil while it is in force.
        var endedAt: WallTime?
    }

    /// The latest last.
    private(set) var entries: [Entry] = []

    /// Drops that are over and still remembered.
    static let endedMax = 100

    /// These restrictions are in force from now on.
    mutating func follow(_ inForce: [Restriction.Scope: Restriction], now: WallTime) {
        for row in entries.indices where entries[row].endedAt == nil {
            if inForce[entries[row].scope] != entries[row].restriction {
                entries[row].endedAt = now
            }
        }
        let followed = Set(entries.filter { $0.endedAt == nil }.map(\.scope))
        entries += inForce.filter { $0.value.action == .drop && !followed.contains($0.key) }
            .map { Entry(scope: $0, restriction: $1, since: now) }
            .sorted { "\($0.scope)" < "\($1.scope)" }
        var surplus = entries.count { $0.endedAt != nil } - Self.endedMax
        entries.removeAll { entry in
            guard entry.endedAt != nil, surplus > 0 else { return false }
            surplus -= 1
            return true
        }
    }

    /// The drop of the first of these scopes that had one at this time.
    func drop(of scopes: [Restriction.Scope], at time: WallTime) -> ExplainedRestriction? {
        for scope in scopes {
            let entry = entries.last {
                $0.scope == scope && $0.since <= time && time <= $0.endedAt ?? time
            }
            if let entry { return ExplainedRestriction(entry) }
        }
        return nil
    }

    /// The drops of these scopes that are over.
    func ended(of scopes: [Restriction.Scope]) -> [ExplainedRestriction] {
        entries.filter { $0.endedAt != nil && scopes.contains($0.scope) }
            .map(ExplainedRestriction.init)
    }
}

extension ExplainedRestriction {
    fileprivate init(_ entry: DropHistory.Entry) {
        self.init(scope: entry.scope, restriction: entry.restriction, endedAt: entry.endedAt)
    }
}
