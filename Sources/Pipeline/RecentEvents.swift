// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel

/// Events within their grace period that say more than "this subject changed": with a payload,
/// filters, an expiry or headers of their own. A token that registers just after one is owed
/// exactly that event. Plain events, nearly all there are, are in `RecentSubjects`, which keeps 8
/// bytes each.
///
/// Entries are in order of reading, each linked with the next one of its subject. `bytes` is their
/// memory without the bodies of payloads, of which each entry is a user; the owner reads no more
/// events above its bound.
struct RecentEvents {
    private(set) var bytes = 0
    private var entries: [Entry] = []
    private var first = 0
    /// Number of `entries[0]`, counted since the start.
    private var base = 0
    private var bySubject: [UInt64: Chain] = [:]

    struct Entry {
        let readAt: MonotonicTime
        let hash: UInt64
        var request: FanOutRequest
        /// The names in the event's filter.
        let kinds: [String]
        fileprivate let bytes: Int
        fileprivate var previous = none
        fileprivate var next = none
    }

    private struct Chain {
        var first: Int
        var last: Int
    }

    private static let none = -1

    /// The memory of an entry, if the array has room for twice as many and the table of chains is
    /// two thirds full.
    private static var bytesPerEntry: Int {
        2 * MemoryLayout<Entry>.stride
            + (MemoryLayout<UInt64>.size + MemoryLayout<Chain>.size) * 3 / 2
    }

    /// The number that the next event will have.
    var end: Int { base + entries.count }

    subscript(number: Int) -> Entry { entries[number - base] }

    mutating func append(
        _ request: FanOutRequest, kinds: [String], hash: UInt64, now: MonotonicTime,
        bodies: inout BodyStore
    ) {
        bodies.retain(request.body)
        var request = request
        // The unknown kinds are among `kinds`, which are looked up again for each token that is
        // owed the event.
        request.filter.unknownKinds = []
        let names = kinds.reduce(0) { $0 + MemoryLayout<String>.size + $1.utf8.count }
        var entry = Entry(
            readAt: now, hash: hash, request: request, kinds: kinds,
            bytes: Self.bytesPerEntry + names + request.filter.kinds.count * 2)
        bytes += entry.bytes
        let number = end
        guard var chain = bySubject[hash] else {
            entries.append(entry)
            bySubject[hash] = Chain(first: number, last: number)
            return
        }
        entry.previous = chain.last
        if entry.says(allOf: self[chain.last]) {
            // Of changes that ask for the same the last one is enough, however often the subject
            // changes.
            let earlier = self[chain.last]
            entry.request.expiresAt = max(request.expiresAt, earlier.request.expiresAt)
            entry.previous = earlier.previous
            entries[chain.last - base].next = Self.replaced
        }
        if entry.previous == Self.none {
            chain.first = number
        } else {
            entries[entry.previous - base].next = number
        }
        chain.last = number
        bySubject[hash] = chain
        entries.append(entry)
    }

    /// The value of `next` in an entry that is no longer in a chain.
    private static let replaced = -2

    /// The first event of this subject that was read at `time` or later.
    func first(hash: UInt64, since time: MonotonicTime) -> Int? {
        guard let chain = bySubject[hash] else { return nil }
        var candidate = chain.first
        while candidate != Self.none {
            let entry = self[candidate]
            if entry.readAt >= time { return candidate }
            candidate = entry.next
        }
        return nil
    }

    /// The next event of the same subject that was read after this one; nil if there is none.
    func following(_ number: Int) -> Int? {
        let next = self[number].next
        return next < 0 ? nil : next
    }

    mutating func forget(before time: MonotonicTime, bodies: inout BodyStore) {
        while first < entries.count, entries[first].readAt < time {
            let entry = entries[first]
            bodies.release(entry.request.body)
            bytes -= entry.bytes
            if entry.next != Self.replaced { unlinkFirst(entry) }
            first += 1
        }
        guard first > 1024 || first == entries.count, first * 2 > entries.count else { return }
        entries.removeFirst(first)
        base += first
        first = 0
    }

    /// Unlinks the oldest entry of all, which is the first of its chain.
    private mutating func unlinkFirst(_ entry: Entry) {
        if entry.next == Self.none {
            bySubject[entry.hash] = nil
        } else {
            bySubject[entry.hash]!.first = entry.next
            entries[entry.next - base].previous = Self.none
        }
    }
}

extension RecentEvents {
    func checkInvariants() {
        let sum = entries[first...].reduce(0) { $0 + $1.bytes }
        precondition(sum == bytes, "the bytes of recent events are miscounted")
        for chain in bySubject.values {
            precondition(self[chain.first].previous == Self.none, "a chain begins in its middle")
            precondition(self[chain.last].next == Self.none, "a chain ends in its middle")
        }
    }
}

extension RecentEvents.Entry {
    /// Whether a token that is owed this event needs nothing of the other.
    fileprivate func says(allOf other: Self) -> Bool {
        request.payloadType == nil && other.request.payloadType == nil
            && request.filter == other.request.filter && kinds == other.kinds
            && request.priority == other.request.priority
            && request.expiration == other.request.expiration
    }
}
