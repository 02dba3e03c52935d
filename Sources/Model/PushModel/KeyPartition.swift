// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which partition of a topic a record's key belongs to.
package enum KeyPartition {
    /// The partition of a key, as Java's producer and librdkafka's `murmur2_random` choose it. Of an
    /// empty key the latter chooses any.
    package static func of(_ key: [UInt8], partitions: Int) -> Int {
        precondition(partitions > 0, "a topic has at least one partition")
        return partitions == 1 ? 0 : Int(murmur2(key) & 0x7fff_ffff) % partitions
    }

    /// MurmurHash2 with the seed of Kafka's `Utils.murmur2`.
    private static func murmur2(_ key: [UInt8]) -> UInt32 {
        let factor: UInt32 = 0x5bd1_e995
        var hash = 0x9747_b28c ^ UInt32(truncatingIfNeeded: key.count)
        var index = 0
        while index + 4 <= key.count {
            var word = UInt32(key[index]) | UInt32(key[index + 1]) << 8
            word |= UInt32(key[index + 2]) << 16 | UInt32(key[index + 3]) << 24
            word &*= factor
            word ^= word >> 24
            hash = (hash &* factor) ^ (word &* factor)
            index += 4
        }
        if index < key.count {
            for place in (index..<key.count).reversed() {
                hash ^= UInt32(key[place]) << UInt32(8 * (place - index))
            }
            hash &*= factor
        }
        hash ^= hash >> 13
        hash &*= factor
        return hash ^ (hash >> 15)
    }
}
