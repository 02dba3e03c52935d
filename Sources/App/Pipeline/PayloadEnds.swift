// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Tombstones for payloads of other workers' partitions, while too many records of `deferred` are
/// unacknowledged for more to be written: oldest first, bounded in bytes.
struct PayloadEnds {
    struct End {
        var key: [UInt8]
        /// When the newer payload was read that APNs has accepted.
        var acceptedReadAt: WallTime
    }

    private var ends: [End] = []
    private var first = 0
    private(set) var bytes = 0
    private let bytesMax: Int
    /// Tombstones for which there was no room: the older payload may still be sent.
    private(set) var dropped = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var isEmpty: Bool { first == ends.count }
    var count: Int { ends.count - first }

    mutating func append(_ end: End) {
        guard bytes + Self.bytes(of: end) <= bytesMax else {
            dropped += 1
            return
        }
        bytes += Self.bytes(of: end)
        ends.append(end)
    }

    mutating func popFirst() -> End? {
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

    /// In memory, the array's header included.
    private static func bytes(of end: End) -> Int { MemoryLayout<End>.stride + 32 + end.key.count }
}
