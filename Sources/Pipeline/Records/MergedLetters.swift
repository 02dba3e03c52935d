// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import RecordFormats

/// Failures for which there is no room for a letter each, because the dead-letters topic has been
/// unavailable for long. All of one partition, reason and status become one letter, which says how
/// many they are and between which offsets. Memory grows with the partitions and reasons, not with
/// the failures.
struct MergedLetters {
    private struct Key: Hashable {
        var topic: String
        var partition: Int32
        var reason: String
        var status: UInt16?
    }

    struct Entry {
        fileprivate(set) var letter: DeadLetter
        /// By epoch, the claim on the lowest offset of each assignment. It holds all later offsets
        /// too.
        fileprivate var lowest: [UInt32: OffsetClaim] = [:]
        /// Claims on rows of `deferred`: each row ends by itself, so each claim is kept.
        fileprivate var rows: [OffsetClaim] = []

        var claims: [OffsetClaim] { lowest.values + rows }
    }

    private var entries: [Key: Entry] = [:]

    /// The most entries with a reason of their own: APNs names the reasons, and might name ever new
    /// ones.
    private static let entriesMax = 1024
    private static let reasonOfTheRest = DeadLetter.OwnReason.several.rawValue

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// Failures in all entries.
    private(set) var failures = 0

    /// Adds a failure. Its claims pass to the entry, except for those that are not needed because
    /// an older claim holds the same partition.
    mutating func add(_ letter: DeadLetter, claims: [OffsetClaim], _ tracker: inout OffsetTracker) {
        var key = Key(
            topic: letter.source.topic, partition: letter.source.partition,
            reason: letter.reason, status: letter.status)
        if entries[key] == nil, entries.count >= Self.entriesMax {
            key.reason = Self.reasonOfTheRest
            key.status = nil
        }
        let count = letter.repeats ?? max(1, letter.targets.count)
        failures += count
        entries[key, default: Entry(letter: Self.empty(key, letter))].letter.merge(letter, count)
        for claim in claims {
            if tracker.isOfTable(claim) {
                entries[key]!.rows.append(claim)
            } else if let known = entries[key]!.lowest[claim.epoch] {
                let isLower = tracker.isOlder(claim, than: known)
                if isLower { entries[key]!.lowest[claim.epoch] = claim }
                tracker.release(isLower ? known : claim)
            } else {
                entries[key]!.lowest[claim.epoch] = claim
            }
        }
    }

    private static func empty(_ key: Key, _ letter: DeadLetter) -> DeadLetter {
        var empty = DeadLetter(
            reason: key.reason, source: letter.source, firstAt: letter.firstAt,
            lastAt: letter.lastAt)
        empty.status = key.status
        empty.message = "while letters could not be written, these failures were counted together"
        empty.isOriginalLeftOut = true
        empty.failures = 0
        empty.lastOffset = letter.source.offset
        return empty
    }

    /// Removes and returns the entry with the oldest failure; the order is the same each time.
    mutating func takeOldest() -> Entry? {
        func age(_ key: Key, _ entry: Entry) -> (Int64, String, Int32, String, UInt16) {
            (
                entry.letter.firstAt.milliseconds, key.topic, key.partition, key.reason,
                key.status ?? 0
            )
        }
        let oldest = entries.min { age($0.key, $0.value) < age($1.key, $1.value) }
        guard let oldest else { return nil }
        entries[oldest.key] = nil
        failures -= oldest.value.letter.failures!
        return oldest.value
    }

    func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for entry in entries.values { entry.claims.forEach(body) }
    }

    func checkInvariants() {
        let sum = entries.values.reduce(0) { $0 + $1.letter.failures! }
        precondition(sum == failures, "the count of failures is that of all merged letters")
        // One for each topic and partition may be over the bound: it has the reason of the rest.
        precondition(
            entries.keys.count { $0.reason != Self.reasonOfTheRest } <= Self.entriesMax,
            "there are at most entriesMax letters besides those for the rest")
    }
}

extension DeadLetter {
    fileprivate mutating func merge(_ other: DeadLetter, _ count: Int) {
        failures! += count
        source.offset = min(source.offset, other.source.offset)
        lastOffset = max(lastOffset!, other.source.offset)
        firstAt = min(firstAt, other.firstAt)
        lastAt = max(lastAt, other.lastAt)
        attempts = max(attempts, other.attempts)
    }
}
