// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Writes a message in protobuf's wire format, field by field. It knows the types that OTLP uses, and
/// as proto3 has it, leaves out numbers that are zero and texts that are empty unless it is told to
/// keep them.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    private enum WireType: UInt64 {
        case varint = 0
        case fixed64 = 1
        case lengthDelimited = 2
    }

    mutating func varint(_ field: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        tag(field, .varint)
        append(varint: value)
    }

    mutating func flag(_ field: UInt64, _ value: Bool) { varint(field, value ? 1 : 0) }

    mutating func fixed64(_ field: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        tag(field, .fixed64)
        append(fixed64: value)
    }

    /// A member of a `oneof`, or an optional field, which is written even if it is zero.
    mutating func present(_ field: UInt64, fixed64 value: UInt64) {
        tag(field, .fixed64)
        append(fixed64: value)
    }

    /// A member of a `oneof`, which is written even if it is zero.
    mutating func present(_ field: UInt64, varint value: UInt64) {
        tag(field, .varint)
        append(varint: value)
    }

    mutating func text(_ field: UInt64, _ value: String) {
        guard !value.isEmpty else { return }
        present(field, text: value)
    }

    /// A member of a `oneof`, which is written even if it is empty.
    mutating func present(_ field: UInt64, text value: String) {
        lengthDelimited(field, count: value.utf8.count)
        bytes.append(contentsOf: value.utf8)
    }

    mutating func data(_ field: UInt64, _ value: [UInt8]) {
        guard !value.isEmpty else { return }
        lengthDelimited(field, count: value.count)
        bytes.append(contentsOf: value)
    }

    /// A repeated field of 64-bit numbers, packed.
    mutating func packed(_ field: UInt64, _ values: some Collection<UInt64>) {
        guard !values.isEmpty else { return }
        lengthDelimited(field, count: 8 * values.count)
        for value in values { append(fixed64: value) }
    }

    mutating func message(_ field: UInt64, _ write: (inout ProtobufWriter) -> Void) {
        var message = ProtobufWriter()
        write(&message)
        lengthDelimited(field, count: message.bytes.count)
        bytes.append(contentsOf: message.bytes)
    }

    private mutating func lengthDelimited(_ field: UInt64, count: Int) {
        tag(field, .lengthDelimited)
        append(varint: UInt64(count))
    }

    private mutating func tag(_ field: UInt64, _ type: WireType) {
        append(varint: field << 3 | type.rawValue)
    }

    private mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private mutating func append(fixed64 value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
