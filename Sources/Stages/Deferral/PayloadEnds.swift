// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Tombstones for payloads in other workers' partitions that wait to be written, because too many
/// records of `deferred` are unacknowledged. Oldest first, bounded in bytes.
package struct PayloadEnds {
    package struct End {
        package var key: [UInt8]
        /// When the newer payload was read that APNs has accepted.
        package var acceptedReadAt: WallTime

        package init(key: [UInt8], acceptedReadAt: WallTime) {
            self.key = key
            self.acceptedReadAt = acceptedReadAt
        }
    }

    private var ends: [End] = []
    private var first = 0
    package private(set) var bytes = 0
    private let bytesMax: Int
    /// How many tombstones found no room. The older payloads may still be sent.
    package private(set) var dropped = 0

    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    package var isEmpty: Bool { first == ends.count }
    package var count: Int { ends.count - first }

    package mutating func append(_ end: End) {
        guard bytes + Self.bytes(of: end) <= bytesMax else {
            dropped += 1
            return
        }
        bytes += Self.bytes(of: end)
        ends.append(end)
    }

    package mutating func popFirst() -> End? {
        guard !isEmpty else { return nil }
        let end = ends[first]
        ends[first].key = []
        first += 1
        bytes -= Self.bytes(of: end)
        if isEmpty || first > 4096 {
            ends.removeFirst(first)
            first = 0
        }
        return end
    }

    /// The memory that a tombstone takes up, the header of the key's array included.
    private static func bytes(of end: End) -> Int { MemoryLayout<End>.stride + 32 + end.key.count }

    package func checkInvariants() {
        let sum = ends[first...].reduce(0) { $0 + Self.bytes(of: $1) }
        precondition(sum == bytes, "the count of bytes is that of the tombstones that wait")
        precondition(bytes <= bytesMax, "the tombstones that wait have at most bytesMax bytes")
    }
}
