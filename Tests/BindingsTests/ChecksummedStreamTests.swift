// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import FlatMemory

@Suite struct `A checksummed stream` {
    @Test func `a CRC32C is that of RFC 3720, with and without the instruction`() {
        let digits = Array("123456789".utf8)
        #expect(digits.withUnsafeBytes { CRC32C.of($0) } == 0xE306_9283)
        #expect([UInt8](repeating: 0, count: 32).withUnsafeBytes { CRC32C.of($0) } == 0x8A91_36AA)
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 * $0 + $0 >> 3) }
        for length in [0, 1, 7, 8, 9, 15, 16, 17, 999, 1000] {
            Array(bytes.prefix(length)).withUnsafeBytes { bytes in
                #expect(CRC32C.of(bytes) == CRC32C.withoutInstruction(bytes))
                var parts = CRC32C()
                parts.combine(UnsafeRawBufferPointer(rebasing: bytes.prefix(length / 3)))
                parts.combine(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(length / 3)))
                #expect(parts.value == CRC32C.of(bytes))
            }
        }
    }

    private final class Memory { var bytes: [UInt8] = [] }

    private static func stream(_ parts: [[UInt8]]) throws -> [UInt8] {
        let memory = Memory()
        var output = ChecksummedOutput { bytes throws(SnapshotFault) in
            #expect(bytes.count <= 1 << 20)
            memory.bytes.append(contentsOf: bytes)
        }
        for part in parts { try output.write(part) }
        try output.finish()
        return memory.bytes
    }

    private static func input(_ bytes: [UInt8]) throws(SnapshotFault) -> ChecksummedInput {
        try ChecksummedInput(bytes: bytes.count) { offset, buffer throws(SnapshotFault) in
            guard offset >= 0, offset + buffer.count <= bytes.count else {
                throw SnapshotFault("beyond the file")
            }
            buffer.copyBytes(from: bytes[offset..<offset + buffer.count])
        }
    }

    @Test(arguments: [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
    func `a stream is read as it was written, however it is cut into parts`(count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 9) }
        let stream = try Self.stream([
            Array(bytes.prefix(count / 3)), Array(bytes.dropFirst(count / 3)),
        ])
        var input = try Self.input(stream)
        var read: [UInt8]
        read = try input.bytes(count / 2)
        #expect(read == Array(bytes.prefix(count / 2)))
        read = try input.bytes(count - count / 2)
        #expect(read == Array(bytes.dropFirst(count / 2)))
        let left = input.left
        #expect(left == 0)
        #expect(throws: SnapshotFault.self) { _ = try input.bytes(1) }
    }

    @Test func `a damaged block is told with its number`() throws {
        var stream = try Self.stream([[UInt8](repeating: 7, count: 5 << 19)])
        stream[(1 << 20) + 5] ^= 1
        var input = try Self.input(stream)
        _ = try input.bytes(1 << 20)
        let fault = #expect(throws: SnapshotFault.self) { _ = try input.bytes(1 << 20) }
        #expect(fault?.reason == "it is damaged in its mebibyte 2")
    }

    @Test func `a length that is not the file's takes no memory`() throws {
        var stream = try Self.stream([[1, 2, 3]])
        // The bytes of data, which begin 16 before the end.
        stream[stream.count - 10] = 0xFF
        #expect(throws: SnapshotFault.self) { _ = try Self.input(stream) }
        #expect(throws: SnapshotFault.self) { _ = try Self.input(Array(stream.prefix(15))) }
    }
}

@Suite struct `A map of blocks` {
    @Test func `numbers are claimed once, over the bounds of words`() {
        var map = BlockMap(size: 300)
        let claimed: [(UInt32, UInt64)] = [
            (60, 140), (199, 1), (200, 100), (299, 2), (.max, .max),
        ]
        let answers = claimed.map { map.claim($0.0, count: $0.1) }
        #expect(answers == [true, false, true, false, false])
        let held = [59, 60, 61, 200, 299, 5000].map { map.begins($0) }
        #expect(held == [false, true, false, true, false, false])
        let first = [0, 61, 200, 201].map { map.first(from: $0) }
        #expect(first == [60, 200, 200, nil])
        let empty = BlockMap(size: 300).first(from: 0)
        #expect(empty == nil)
    }
}
