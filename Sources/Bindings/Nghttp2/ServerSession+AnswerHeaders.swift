// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// The header list of one answer, filled in, submitted and reused.
package struct AnswerHeaders: ~Copyable {
    /// Room for the few fields of an APNs answer.
    package static let countMax = 8
    package static let valueBytesMax = 512

    let fields: UnsafeMutablePointer<nghttp2_nv>
    private let values: UnsafeMutablePointer<UInt8>
    package private(set) var count = 0
    private var valueBytes = 0

    package init() {
        fields = .allocate(capacity: Self.countMax)
        values = .allocate(capacity: Self.valueBytesMax)
    }

    deinit {
        fields.deallocate()
        values.deallocate()
    }

    package mutating func removeAll() {
        count = 0
        valueBytes = 0
    }

    /// - Parameter indexed: whether HPACK may put the value into the dynamic table; otherwise it
    ///   is sent as a literal that is never indexed.
    package mutating func append(
        _ name: StaticString, _ value: UnsafeRawBufferPointer, indexed: Bool
    ) {
        precondition(
            count < Self.countMax && value.count <= Self.valueBytesMax &- valueBytes,
            "an answer has at most \(Self.countMax) headers and \(Self.valueBytesMax) bytes")
        let place = values + valueBytes
        if let source = value.baseAddress {
            UnsafeMutableRawPointer(place).copyMemory(from: source, byteCount: value.count)
        }
        // The values here are reused at once, so nghttp2 copies them; names are immortal.
        var flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
        if !indexed { flags |= NGHTTP2_NV_FLAG_NO_INDEX.rawValue }
        fields[count] = nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start), value: place,
            namelen: name.utf8CodeUnitCount, valuelen: value.count,
            flags: UInt8(truncatingIfNeeded: flags))
        count &+= 1
        valueBytes &+= value.count
    }

    package mutating func append(_ name: StaticString, _ value: StaticString) {
        append(
            name,
            UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount),
            indexed: true)
    }

    /// Appends `:status`, which must come first. The usual ones are in HPACK's static table.
    package mutating func append(status: UInt16) {
        precondition(status >= 100 && status <= 999, "an HTTP status has three digits: \(status)")
        withUnsafeTemporaryAllocation(byteCount: 3, alignment: 1) { digits in
            digits[0] = UInt8(0x30 &+ status / 100)
            digits[1] = UInt8(0x30 &+ status / 10 % 10)
            digits[2] = UInt8(0x30 &+ status % 10)
            append(":status", UnsafeRawBufferPointer(digits), indexed: true)
        }
    }
}
