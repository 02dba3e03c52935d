// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// The names of kinds, each kept once and for the life of the process: apps have tens of them.
struct KindTable: ~Copyable, Sendable {
    /// Byte strings by `KindID`; row 0 is `KindID.none`.
    private var names: Column<Slice>
    private var bytes: ByteArena
    private var index: IndexTable
    private let seed: UInt64

    private struct Slice: BitwiseCopyable {
        var block: UInt32
        var count: UInt32
    }

    /// All that 16 bits can name, 0 excepted.
    static let countMax = 65_535
    /// The longest name.
    static let bytesMax = 256

    init(seed: UInt64) {
        names = Column(capacity: Self.countMax + 1)
        names.append(Slice(block: 0, count: 0))
        bytes = ByteArena(reservedBytes: (Self.countMax + 1) * Self.bytesMax)
        index = IndexTable(reservedSlots: 2 * Self.countMax)
        self.seed = seed
    }

    var count: Int { names.count - 1 }
    var memoryBytes: Int { names.bytes + bytes.bytes + index.bytes }

    func find(_ name: UnsafeRawBufferPointer) -> KindID? {
        index.row(hash: StableHash.hash64(name, seed: seed)) { row in
            let slice = names[Int(row)]
            return Int(slice.count) == name.count
                && bytes.holds(name, at: slice.block, offset: 0)
        }.map { KindID(rawValue: UInt16($0)) }
    }

    /// Nil when the table is full.
    mutating func intern(_ name: UnsafeRawBufferPointer) -> KindID? {
        if let known = find(name) { return known }
        guard count < Self.countMax else { return nil }
        let block = bytes.allocate(bytes: name.count)
        bytes.write(name, to: block, offset: 0)
        let row = UInt32(names.count)
        names.append(Slice(block: block, count: UInt32(name.count)))
        index.insert(hash: StableHash.hash64(name, seed: seed), row: row)
        return KindID(rawValue: UInt16(row))
    }

    /// Empty for `KindID.none`.
    func name(of kind: KindID) -> UnsafeRawBufferPointer {
        let slice = names[Int(kind.rawValue)]
        return bytes.bytes(slice.block, offset: 0, count: Int(slice.count))
    }
}
