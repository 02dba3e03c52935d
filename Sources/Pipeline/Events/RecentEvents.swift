// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel

/// Events within their grace period that say more than "this subject changed": with a payload,
/// filters, an expiry or headers of their own. A token that registers just after one is owed
/// exactly that event. Plain events, nearly all there are, are in `RecentSubjects`, which keeps 8
/// bytes each.
///
/// There is one entry for each event, however many lists it goes through, and a place for each
/// list, linked with the next one on that list. Both are in order of reading. `bytes` is their
/// memory without the bodies of payloads, of which each entry is a user; the owner reads no more
/// events above its bound.
struct RecentEvents {
    private(set) var bytes = 0
    /// The bytes of each topic's events, by its position; it ends with the last topic that had any.
    private(set) var bytesByTopic: [Int] = []
    private var entries: [Entry] = []
    private var firstEntry = 0
    /// Number of `entries[0]`, counted since the start.
    private var entryBase = 0
    private var places: [Place] = []
    private var firstPlace = 0
    private var placeBase = 0
    private var byHash: [UInt64: Chain] = [:]

    fileprivate struct Entry {
        let readAt: MonotonicTime
        let request: FanOutRequest
        /// The names in the event's filter.
        let kinds: [String]
        var bytes: Int
        /// How many lists the event goes through.
        var places = 0
    }

    private struct Place {
        let hash: UInt64
        let entry: Int
        /// The latest expiry of the events for which this place stands.
        var expiresAt: MonotonicTime
        var previous = none
        var next = none
    }

    private struct Chain {
        var first: Int
        var last: Int
    }

    /// An event on one of its lists.
    struct Event {
        /// What it asks; the subject is that of the event's first list.
        var request: FanOutRequest
        let kinds: [String]
    }

    private static let none = -1
    /// The value of `next` in a place that is no longer in a chain.
    private static let replaced = -2

    // The memory of each, if its array has room for twice as many and the table of chains is two
    // thirds full.
    private static var bytesPerEntry: Int { 2 * MemoryLayout<Entry>.stride }
    private static var bytesPerPlace: Int {
        2 * MemoryLayout<Place>.stride
            + (MemoryLayout<UInt64>.size + MemoryLayout<Chain>.size) * 3 / 2
    }

    /// The number that the next place will have.
    var end: Int { placeBase + places.count }

    /// The event in this place.
    subscript(number: Int) -> Event {
        let place = places[number - placeBase]
        let entry = entries[place.entry - entryBase]
        var event = Event(request: entry.request, kinds: entry.kinds)
        event.request.expiresAt = place.expiresAt
        return event
    }

    /// Notes an event on one of its lists. Those of one event come one after the other.
    mutating func append(
        _ request: FanOutRequest, kinds: [String], hash: UInt64, now: MonotonicTime,
        bodies: inout BodyStore
    ) {
        if !isLast(request) { insert(request, kinds: kinds, now: now, &bodies) }
        entries[entries.count - 1].places += 1
        add(Self.bytesPerPlace, to: entries.count - 1)
        link(hash, expiresAt: request.expiresAt)
    }

    /// Whether the last entry is of this event.
    private func isLast(_ request: FanOutRequest) -> Bool {
        guard firstEntry < entries.count, let last = entries.last?.request else { return false }
        return last.readSequence == request.readSequence && last.origin == request.origin
            && last.body == request.body
    }

    private mutating func insert(
        _ request: FanOutRequest, kinds: [String], now: MonotonicTime, _ bodies: inout BodyStore
    ) {
        bodies.retain(request.body)
        var request = request
        // The unknown kinds are among `kinds`, which are looked up again for each token that is
        // owed the event.
        request.filter.unknownKinds = []
        let names = kinds.reduce(0) { $0 + MemoryLayout<String>.size + $1.utf8.count }
        entries.append(Entry(readAt: now, request: request, kinds: kinds, bytes: 0))
        add(
            Self.bytesPerEntry + names + request.filter.kinds.count * 2, to: entries.count - 1)
    }

    private mutating func add(_ size: Int, to index: Int) {
        entries[index].bytes += size
        count(size, of: entries[index])
    }

    private mutating func count(_ size: Int, of entry: Entry) {
        bytes += size
        let topic = Int(entry.request.origin?.topic ?? 0)
        while bytesByTopic.count <= topic { bytesByTopic.append(0) }
        bytesByTopic[topic] += size
    }

    private mutating func link(_ hash: UInt64, expiresAt: MonotonicTime) {
        let number = end
        var place = Place(hash: hash, entry: entryBase + entries.count - 1, expiresAt: expiresAt)
        guard var chain = byHash[hash] else {
            places.append(place)
            byHash[hash] = Chain(first: number, last: number)
            return
        }
        place.previous = chain.last
        let earlier = places[chain.last - placeBase]
        if entries[entries.count - 1].says(allOf: entries[earlier.entry - entryBase]) {
            // Of changes that ask for the same the last one is enough, however often the subject
            // changes.
            place.expiresAt = max(place.expiresAt, earlier.expiresAt)
            place.previous = earlier.previous
            places[chain.last - placeBase].next = Self.replaced
        }
        if place.previous == Self.none {
            chain.first = number
        } else {
            places[place.previous - placeBase].next = number
        }
        chain.last = number
        byHash[hash] = chain
        places.append(place)
    }

    /// The first event of this subject that was read at `time` or later.
    func first(hash: UInt64, since time: MonotonicTime) -> Int? {
        guard let chain = byHash[hash] else { return nil }
        var candidate = chain.first
        while candidate != Self.none {
            let place = places[candidate - placeBase]
            if entries[place.entry - entryBase].readAt >= time { return candidate }
            candidate = place.next
        }
        return nil
    }

    /// The next event of the same subject that was read after this one; nil if there is none.
    func following(_ number: Int) -> Int? {
        let next = places[number - placeBase].next
        return next < 0 ? nil : next
    }

    mutating func forget(before time: MonotonicTime, bodies: inout BodyStore) {
        while firstEntry < entries.count, entries[firstEntry].readAt < time {
            let entry = entries[firstEntry]
            bodies.release(entry.request.body)
            count(-entry.bytes, of: entry)
            for _ in 0..<entry.places { forgetFirstPlace() }
            firstEntry += 1
        }
        if Self.isWorthMoving(firstEntry, of: entries.count) {
            entries.removeFirst(firstEntry)
            entryBase += firstEntry
            firstEntry = 0
        }
        if Self.isWorthMoving(firstPlace, of: places.count) {
            places.removeFirst(firstPlace)
            placeBase += firstPlace
            firstPlace = 0
        }
    }

    private static func isWorthMoving(_ forgotten: Int, of count: Int) -> Bool {
        (forgotten > 1024 || forgotten == count) && forgotten * 2 > count
    }

    /// Forgets the oldest place of all, which is the first of its chain unless it was replaced.
    private mutating func forgetFirstPlace() {
        let place = places[firstPlace]
        firstPlace += 1
        if place.next == Self.replaced { return }
        if place.next == Self.none {
            byHash[place.hash] = nil
        } else {
            byHash[place.hash]!.first = place.next
            places[place.next - placeBase].previous = Self.none
        }
    }
}

extension RecentEvents {
    func checkInvariants() {
        let entries = entries[firstEntry...]
        precondition(
            entries.reduce(0) { $0 + $1.bytes } == bytes
                && bytesByTopic.reduce(0, +) == bytes && bytesByTopic.allSatisfy { $0 >= 0 },
            "the bytes counted, in all and by topic, are those of the entries")
        precondition(
            entries.reduce(0) { $0 + $1.places } == places.count - firstPlace,
            "each place belongs to an event")
        for chain in byHash.values {
            precondition(
                places[chain.first - placeBase].previous == Self.none,
                "the first place of a chain has none before it")
            precondition(
                places[chain.last - placeBase].next == Self.none,
                "the last place of a chain has none after it")
        }
    }

    /// How many events are remembered.
    var count: Int { entries.count - firstEntry }
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
