// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Counts 410 answers that contradict a later registration: APNs said when it knew the token dead,
/// and the token was registered again after that. A single one may reflect an old state; three over
/// at least an hour mean that the registration is wrong. At most `entriesMax` tokens are watched.
struct StrikeBook {
    private var entries: [[UInt8]: Entry] = [:]

    private struct Entry {
        var strikes: Int
        var first: MonotonicTime
    }

    private static let strikesMax = 3
    private static let least = Duration.seconds(3600)
    private static let entriesMax = 4096

    /// - Returns: whether to believe after all that the token is dead.
    mutating func strike(token: [UInt8], now: MonotonicTime) -> Bool {
        if entries[token] == nil, entries.count >= Self.entriesMax { makeRoom(now: now) }
        var entry = entries[token] ?? Entry(strikes: 0, first: now)
        entry.strikes += 1
        if entry.strikes >= Self.strikesMax, now - entry.first >= Self.least {
            entries[token] = nil
            return true
        }
        entries[token] = entry
        return false
    }

    /// Forgets tokens that had their first strike a day ago, or all. A forgotten strike only means
    /// that a dead token is sent a few pushes more.
    private mutating func makeRoom(now: MonotonicTime) {
        entries = entries.filter { now - $0.value.first < .seconds(86_400) }
        if entries.count >= Self.entriesMax { entries = [:] }
    }
}
