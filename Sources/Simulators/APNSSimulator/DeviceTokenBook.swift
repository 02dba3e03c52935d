// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// The topic and environment that each device token belongs to, as learnt from its first use.
/// Shared by all threads. A token is identified by 64 bits of its hash: among ten million, two are
/// confused with a probability of 3 in a million.
final class DeviceTokenBook: Sendable {
    private static let shardCount = 64
    private let shards: [Shard]

    /// - Parameter gapMin: nanoseconds between two pushes to one token; 0 for no such rule.
    init(tokensMax: Int, gapMin: Int64) {
        shards = (0..<Self.shardCount).map { _ in
            Shard(Table(tokensMax: max(1, tokensMax / Self.shardCount), gapMin: gapMin))
        }
    }

    enum Finding {
        /// The token is new and now remembered, or known as belonging to this owner.
        case belongs
        /// The token belongs to another owner.
        case belongsTo(UInt32)
        /// The token belongs to this owner, but its last push is more recent than the gap allows.
        case tooSoon
        /// The token is new, and the book is full.
        case unremembered
    }

    /// Looks up a token, and remembers its owner if it is new.
    ///
    /// - Parameter now: nanoseconds since 1970.
    func look(_ hash: UInt64, owner: UInt32, now: Int64) -> Finding {
        // 0 marks a free place.
        let key = hash == 0 ? 1 : hash
        // The top 6 bits select one of 64 shards, the low bits the place in it.
        return shards[Int(key >> 58)].table.withLock { $0.look(key, owner: owner, now: now) }
    }

    /// Changes the gap. A token's first push under a new gap passes.
    ///
    /// - Parameter gapMin: nanoseconds; 0 for no gap.
    func keepGap(_ gapMin: Int64) {
        for shard in shards { shard.table.withLock { $0.keepGap(gapMin) } }
    }

    /// Sets the owner of a token, known or new; false if the book is full.
    func assign(_ hash: UInt64, owner: UInt32) -> Bool {
        let key = hash == 0 ? 1 : hash
        return shards[Int(key >> 58)].table.withLock { $0.assign(key, owner: owner) }
    }

    private final class Shard: Sendable {
        let table: Mutex<Table>

        init(_ table: Table) { self.table = Mutex(table) }
    }

    /// A hash table with open addressing and linear probing, at most half full.
    private struct Table {
        private var keys: [UInt64]
        private var owners: [UInt32]
        /// When each token last got a push, 0 for never; empty while there is no gap.
        private var pushedAt: [Int64]
        private var count = 0
        private let tokensMax: Int
        private var gapMin: Int64

        init(tokensMax: Int, gapMin: Int64) {
            self.tokensMax = tokensMax
            self.gapMin = gapMin
            keys = Array(repeating: 0, count: 256)
            owners = Array(repeating: 0, count: 256)
            pushedAt = gapMin > 0 ? Array(repeating: 0, count: 256) : []
        }

        mutating func keepGap(_ gapMin: Int64) {
            // Times of an earlier gap are incomplete: pushes while there was none are missing.
            pushedAt = gapMin > 0 ? Array(repeating: 0, count: keys.count) : []
            self.gapMin = gapMin
        }

        mutating func assign(_ key: UInt64, owner: UInt32) -> Bool {
            let place = place(of: key)
            if keys[place] == key {
                owners[place] = owner
                return true
            }
            return add(key, owner: owner, at: place, pushedAt: 0)
        }

        mutating func look(_ key: UInt64, owner: UInt32, now: Int64) -> Finding {
            let place = place(of: key)
            if keys[place] == key {
                guard owners[place] == owner else { return .belongsTo(owners[place]) }
                guard gapMin > 0 else { return .belongs }
                if now - pushedAt[place] < gapMin { return .tooSoon }
                pushedAt[place] = now
                return .belongs
            }
            return add(key, owner: owner, at: place, pushedAt: now) ? .belongs : .unremembered
        }

        private mutating func add(
            _ key: UInt64, owner: UInt32, at place: Int, pushedAt time: Int64
        ) -> Bool {
            assert(keys[place] == 0, "a token is written only to an empty place")
            guard count < tokensMax else { return false }
            keys[place] = key
            owners[place] = owner
            if gapMin > 0 { pushedAt[place] = time }
            count += 1
            if count * 2 > keys.count { grow() }
            return true
        }

        private func place(of key: UInt64) -> Int {
            assert(
                key != 0 && count * 2 <= keys.count,
                "a key is not 0, and at least half of the places are empty, so a search ends")
            let mask = keys.count - 1
            var place = Int(truncatingIfNeeded: key) & mask
            while keys[place] != 0 && keys[place] != key { place = (place + 1) & mask }
            return place
        }

        private mutating func grow() {
            let old = self
            keys = Array(repeating: 0, count: old.keys.count * 2)
            owners = Array(repeating: 0, count: keys.count)
            if gapMin > 0 { pushedAt = Array(repeating: 0, count: keys.count) }
            for index in old.keys.indices where old.keys[index] != 0 {
                let place = place(of: old.keys[index])
                keys[place] = old.keys[index]
                owners[place] = old.owners[index]
                if gapMin > 0 { pushedAt[place] = old.pushedAt[index] }
            }
        }
    }
}
