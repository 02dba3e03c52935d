// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// What the simulator has learnt of device tokens, from their first use: the topic and environment
/// that each belongs to. Shared by all threads; a token is known by 64 bits of its hash, so that
/// among ten million two are confused with a probability of 3 in a million.
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
        /// New and remembered, or known as belonging to this owner.
        case belongs
        /// Known as belonging to another owner.
        case belongsTo(UInt32)
        /// The owner is right, and the last push was less than the gap ago.
        case tooSoon
        /// New, and the book is full.
        case unremembered
    }

    /// - Parameter now: nanoseconds since 1970.
    func look(_ hash: UInt64, owner: UInt32, now: Int64) -> Finding {
        // 0 marks a free place.
        let key = hash == 0 ? 1 : hash
        // 58: the top 6 bits choose among 64 shards, the low ones the place within.
        return shards[Int(key >> 58)].table.withLock { $0.look(key, owner: owner, now: now) }
    }

    /// - Parameter gapMin: as with `init`; a token's first push under a new gap passes.
    func keepGap(_ gapMin: Int64) {
        for shard in shards { shard.table.withLock { $0.keepGap(gapMin) } }
    }

    /// Says whose a token is, known or not; false when the book is full.
    func assign(_ hash: UInt64, owner: UInt32) -> Bool {
        let key = hash == 0 ? 1 : hash
        return shards[Int(key >> 58)].table.withLock { $0.assign(key, owner: owner) }
    }

    private final class Shard: Sendable {
        let table: Mutex<Table>

        init(_ table: Table) { self.table = Mutex(table) }
    }

    /// Open addressing with linear probing; at most half full.
    private struct Table {
        private var keys: [UInt64]
        private var owners: [UInt32]
        /// When each was last pushed to, 0 for never; empty while there is no gap to keep.
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
            // Times of an earlier gap have holes: what was pushed to without one is not in them.
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
            assert(keys[place] == 0, "a token is written over another")
            guard count < tokensMax else { return false }
            keys[place] = key
            owners[place] = owner
            if gapMin > 0 { pushedAt[place] = time }
            count += 1
            if count * 2 > keys.count { grow() }
            return true
        }

        private func place(of key: UInt64) -> Int {
            assert(key != 0 && count * 2 <= keys.count, "a search that would not end")
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
