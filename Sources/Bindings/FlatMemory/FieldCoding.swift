// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Appends numbers and short texts as bytes: little-endian, lengths first.
package struct FieldWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func append(_ value: [UInt8]) {
        append(UInt32(value.count))
        bytes.append(contentsOf: value)
    }

    package mutating func append(_ text: String) { append(Array(text.utf8)) }
}

/// Reads what `FieldWriter` has written, or throws. Nothing is taken on trust: a length is compared
/// with the bytes that are left before memory is taken for it.
package struct FieldReader {
    private let bytes: [UInt8]
    private var offset = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package var left: Int { bytes.count - offset }

    private mutating func number<Number: FixedWidthInteger>(
        _ type: Number.Type
    ) throws(SnapshotFault) -> Number {
        let size = MemoryLayout<Number>.size
        guard size <= left else { throw SnapshotFault("its head ends early") }
        let value = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
        offset += size
        return Number(littleEndian: value)
    }

    package mutating func uint16() throws(SnapshotFault) -> UInt16 { try number(UInt16.self) }
    package mutating func uint32() throws(SnapshotFault) -> UInt32 { try number(UInt32.self) }
    package mutating func uint64() throws(SnapshotFault) -> UInt64 { try number(UInt64.self) }
    package mutating func int64() throws(SnapshotFault) -> Int64 { try number(Int64.self) }

    /// A number of elements, of which each takes so many bytes at least.
    package mutating func count(
        ofAtLeast bytes: Int, most: Int = .max
    ) throws(SnapshotFault) -> Int {
        let count = Int(try uint32())
        guard count <= most, count <= left / bytes else {
            throw SnapshotFault("its head counts more than there is")
        }
        return count
    }

    package mutating func value(most: Int) throws(SnapshotFault) -> [UInt8] {
        let count = try count(ofAtLeast: 1, most: most)
        defer { offset += count }
        return Array(bytes[offset..<offset + count])
    }

    /// - Parameter most: bytes of UTF-8.
    package mutating func text(most: Int) throws(SnapshotFault) -> String {
        let bytes = try value(most: most)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SnapshotFault("its head has a text that is not UTF-8")
        }
        return text
    }
}
