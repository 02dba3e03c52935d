// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel

/// Events with a payload that a token registered a moment later is still owed. Bounded by the bound
/// on payload bytes: each entry is a user of its body.
struct RecentPayloads {
    private var entries: [Entry] = []
    private var first = 0
    private var byHash: [UInt64: Int] = [:]

    struct Entry {
        fileprivate var readAt: MonotonicTime
        fileprivate var hash: UInt64
        var request: FanOutRequest
        /// The names in the event's filter.
        var kinds: [String]
    }

    mutating func append(
        _ request: FanOutRequest, kinds: [String], hash: UInt64, now: MonotonicTime,
        bodies: inout BodyStore
    ) {
        bodies.retain(request.body)
        entries.append(Entry(readAt: now, hash: hash, request: request, kinds: kinds))
        byHash[hash, default: 0] += 1
    }

    /// The payloads of this subject that are still owed.
    func events(hash: UInt64) -> [Entry] {
        guard byHash[hash] != nil else { return [] }
        return entries[first...].filter { $0.hash == hash }
    }

    mutating func forget(before time: MonotonicTime, bodies: inout BodyStore) {
        while first < entries.count, entries[first].readAt < time {
            let entry = entries[first]
            bodies.release(entry.request.body)
            byHash[entry.hash]! -= 1
            if byHash[entry.hash] == 0 { byHash[entry.hash] = nil }
            first += 1
        }
        if first > 1024, first * 2 > entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }
}
