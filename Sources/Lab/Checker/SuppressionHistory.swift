// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The records of the suppressions topic, by token.
struct SuppressionHistory {
    struct Entry {
        /// The record's timestamp, in milliseconds since 1970.
        var t: Int64
        /// Registrations up to this time, in milliseconds since 1970, are suppressed; nil revokes
        /// the suppression before.
        var registeredAt: Int64?
        var status: UInt16
    }

    private var entries: [UInt32: [Entry]] = [:]
    private(set) var unreadable = 0

    mutating func apply(_ record: LoggedRecord, tokens: TokenBook) {
        let parts = record.key.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let environment = Environment.word(parts[0]) else {
            unreadable += 1
            return
        }
        let address = Fingerprint(
            environment: environment, topic: String(parts[1]), token: String(parts[2]))
        // A token that was never registered has no obligations.
        guard let token = tokens.number(address) else { return }
        guard record.value != nil else {
            entries[token, default: []].append(Entry(t: record.t, registeredAt: nil, status: 0))
            return
        }
        guard let members = record.members, let registeredAt = members.instant("registeredAt"),
            let status = members.integer("status").flatMap({ UInt16(exactly: $0) })
        else {
            unreadable += 1
            return
        }
        entries[token, default: []].append(
            Entry(t: record.t, registeredAt: registeredAt, status: status))
    }

    /// The suppressions of a registration that are in effect at `t` or were written later, without
    /// those revoked by `t`.
    func standing(on token: UInt32, registeredAt: Int64, at t: Int64) -> [Entry] {
        var standing: [Entry] = []
        for entry in entries[token] ?? [] {
            if let until = entry.registeredAt {
                if until >= registeredAt { standing.append(entry) }
            } else if entry.t <= t {
                standing.removeAll()
            }
        }
        return standing
    }
}
