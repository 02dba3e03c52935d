// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Bytes in blocks of a mebibyte, each with its CRC32C in a table behind them:
///
///     data │ CRC32C of each block, 4 bytes each │ bytes of data, 8 │ blocks, 4 │ CRC32C of the table, 4
///
/// All numbers are little-endian. The last 16 bytes say how long everything is.
package enum ChecksummedStream {
    package static let blockBytes = 1 << 20
    static let endBytes = 16

    static func blocks(of dataBytes: Int) -> Int {
        dataBytes / blockBytes + (dataBytes % blockBytes > 0 ? 1 : 0)
    }
}

/// Writes a checksummed stream.
package struct ChecksummedOutput: ~Copyable {
    package typealias Sink = (UnsafeRawBufferPointer) throws(SnapshotFault) -> Void

    private let sink: Sink
    private var block = CRC32C()
    private var checksums: [UInt32] = []
    /// The bytes of data so far.
    package private(set) var count = 0

    /// - Parameter sink: takes at most a block at a time.
    package init(_ sink: @escaping Sink) { self.sink = sink }

    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(SnapshotFault) {
        var rest = bytes
        while rest.count > 0 {
            let room = ChecksummedStream.blockBytes - count % ChecksummedStream.blockBytes
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(room))
            try sink(part)
            block.combine(part)
            count += part.count
            if part.count == room { endBlock() }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(room))
        }
    }

    package mutating func write(_ bytes: [UInt8]) throws(SnapshotFault) {
        try bytes.lend { bytes throws(SnapshotFault) in try write(bytes) }
    }

    /// Writes the table, with which the stream is complete.
    package mutating func finish() throws(SnapshotFault) {
        if count % ChecksummedStream.blockBytes > 0 { endBlock() }
        var table = FieldWriter()
        for checksum in checksums { table.append(checksum) }
        table.append(UInt64(count))
        table.append(UInt32(checksums.count))
        table.append(table.bytes.withUnsafeBytes { CRC32C.of($0) })
        try table.bytes.lend { bytes throws(SnapshotFault) in try sink(bytes) }
    }

    private mutating func endBlock() {
        checksums.append(block.value)
        block = CRC32C()
    }
}

/// Reads a checksummed stream from its start. Nothing of a block can be relied on before all of it
/// has been read.
package struct ChecksummedInput: ~Copyable {
    /// Fills the buffer with what is at this offset. Two threads may call it at once, so
    /// it keeps no state.
    package typealias Source =
        (_ offset: Int, UnsafeMutableRawBufferPointer) throws(SnapshotFault) -> Void

    private let source: Source
    private let checksums: [UInt32]
    private var block = CRC32C()
    private var offset = 0
    /// The bytes of all data.
    package let count: Int

    /// - Parameters:
    ///   - bytes: the length of the whole stream, table included.
    package init(bytes: Int, _ source: @escaping Source) throws(SnapshotFault) {
        guard bytes >= ChecksummedStream.endBytes else { throw SnapshotFault("it is cut off") }
        let end = try Self.read(source, bytes - ChecksummedStream.endBytes..<bytes)
        var fields = FieldReader(end)
        let count = try fields.uint64()
        let blocks = Int(try fields.uint32())
        // Everything is bounded by the length of the file before memory is taken for it.
        guard count <= UInt64(bytes), ChecksummedStream.blocks(of: Int(count)) == blocks,
            Int(count) + 4 * blocks + ChecksummedStream.endBytes == bytes
        else { throw SnapshotFault("it is cut off, or its end was overwritten") }
        let table = try Self.read(source, Int(count)..<bytes - 4)
        guard table.withUnsafeBytes({ CRC32C.of($0) }) == (try fields.uint32()) else {
            throw SnapshotFault("its table of checksums is damaged")
        }
        var numbers = FieldReader(table)
        var checksums: [UInt32] = []
        checksums.reserveCapacity(blocks)
        for _ in 0..<blocks { checksums.append(try numbers.uint32()) }
        self.source = source
        self.count = Int(count)
        self.checksums = checksums
    }

    private static func read(
        _ source: Source, _ range: Range<Int>
    ) throws(SnapshotFault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        try bytes.lendMutable { bytes throws(SnapshotFault) in
            try source(range.lowerBound, bytes)
        }
        return bytes
    }

    /// The bytes that have not been read.
    package var left: Int { count - offset }

    /// Fills the buffer with the next bytes.
    package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(SnapshotFault) {
        guard buffer.count <= left else { throw SnapshotFault("it ends early") }
        var rest = buffer
        while rest.count > 0 {
            let room = ChecksummedStream.blockBytes - offset % ChecksummedStream.blockBytes
            let blocks = rest.count / ChecksummedStream.blockBytes
            if room == ChecksummedStream.blockBytes, blocks >= Self.blocksSharedMin {
                try fillBlocks(rest.prefix(blocks * ChecksummedStream.blockBytes))
                let filled = blocks * ChecksummedStream.blockBytes
                rest = UnsafeMutableRawBufferPointer(rebasing: rest.dropFirst(filled))
                continue
            }
            let part = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(room))
            try source(offset, part)
            block.combine(UnsafeRawBufferPointer(part))
            offset += part.count
            if part.count == room || offset == count { try endBlock() }
            rest = UnsafeMutableRawBufferPointer(rebasing: rest.dropFirst(room))
        }
    }

    package mutating func bytes(_ count: Int) throws(SnapshotFault) -> [UInt8] {
        guard count <= left else { throw SnapshotFault("it ends early") }
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.lendMutable { bytes throws(SnapshotFault) in try fill(bytes) }
        return bytes
    }

    /// Fewer blocks are not worth a thread.
    private static let blocksSharedMin = 16

    /// Fills whole blocks from the start of one. Copying is bound by one core, so two share it.
    private mutating func fillBlocks(
        _ buffer: Slice<UnsafeMutableRawBufferPointer>
    ) throws(SnapshotFault) {
        let (source, checksums, first) = (source, checksums, offset / ChecksummedStream.blockBytes)
        let all = UnsafeMutableRawBufferPointer(rebasing: buffer)
        let blocks = all.count / ChecksummedStream.blockBytes
        func fill(_ range: Range<Int>) -> Result<Void, SnapshotFault> {
            Result { () throws(SnapshotFault) in
                for block in range {
                    let start = block * ChecksummedStream.blockBytes
                    let part = UnsafeMutableRawBufferPointer(
                        rebasing: all[start..<start + ChecksummedStream.blockBytes])
                    let number = first + block
                    try source(number * ChecksummedStream.blockBytes, part)
                    guard CRC32C.of(UnsafeRawBufferPointer(part)) == checksums[number] else {
                        throw Self.damaged(number)
                    }
                }
            }
        }
        var lower: Result<Void, SnapshotFault> = .success(())
        var upper: Result<Void, SnapshotFault> = .success(())
        TwoThreads.run {
            lower = fill(0..<blocks / 2)
        } _: {
            upper = fill(blocks / 2..<blocks)
        }
        try lower.get()
        try upper.get()
        offset += all.count
    }

    private static func damaged(_ block: Int) -> SnapshotFault {
        SnapshotFault("it is damaged in its mebibyte \(block + 1)")
    }

    private mutating func endBlock() throws(SnapshotFault) {
        let number = (offset - 1) / ChecksummedStream.blockBytes
        guard checksums[number] == block.value else {
            throw Self.damaged(number)
        }
        block = CRC32C()
    }
}
