// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2
internal import Nghttp2

/// Our HPACK encoder against nghttp2's decoder. The input: three values, each after its length (a
/// byte), then operations of two bytes.
///
/// What is decoded is what was encoded, whatever was indexed, pushed out or forgotten before.
enum HeadersTarget {
    private static let blocksMax = 256

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        var constants = HeaderConstants()
        var values: [[UInt8]] = []
        for index in 0..<3 {
            let value = String(
                decoding: input.bytes(Int(input.byte()) * 8), as: UTF8.self)
            _ = constants.add("x-constant-\(index)", value)
            values.append(Array(value.utf8))
        }
        for index in 3..<6 { _ = constants.add("x-name-\(index)") }
        var pair = HeaderPair(constants: constants, values: values)
        for _ in 0..<blocksMax where !input.rest.isEmpty { try pair.exchange(&input) }
    }
}

private struct HeaderPair: ~Copyable {
    private var encoder: HPACKEncoder
    private let constants: HeaderConstants
    private let values: [[UInt8]]
    /// What stands for the names whose values repeat.
    private var repeated: [Int: [UInt8]] = [:]
    private let decoder: OpaquePointer

    init(constants: consuming HeaderConstants, values: [[UInt8]]) {
        encoder = HPACKEncoder(constants: constants.count, blockBytesMax: 64 << 10)
        self.constants = constants
        self.values = values
        var decoder: OpaquePointer?
        precondition(nghttp2_hd_inflate_new(&decoder) == 0, "out of memory")
        self.decoder = decoder!
    }

    deinit { nghttp2_hd_inflate_del(decoder) }

    /// One header block, of up to eight operations.
    mutating func exchange(_ input: inout FuzzInput) throws {
        var expected: [[UInt8]] = []
        if input.byte() & 7 == 0 { changeTable(to: UInt32(input.byte()) * 24) }
        encoder.begin()
        for _ in 0..<8 where !input.rest.isEmpty {
            let operation = input.byte()
            if operation & 7 == 7 { break }
            expected.append(append(operation, &input))
        }
        try promise(try decoded() == expected, "what is decoded is not what was encoded")
    }

    /// As SETTINGS would, which its sender's decoder obeys too.
    private mutating func changeTable(to bytes: UInt32) {
        encoder.tableLimitChanged(to: bytes)
        nghttp2_hd_inflate_change_table_size(decoder, Int(bytes))
    }

    /// One header; as the decoder should give it.
    private mutating func append(_ operation: UInt8, _ input: inout FuzzInput) -> [UInt8] {
        let number = Int(operation >> 3) % 3
        let name = ConstantHeader(number: 3 + number)
        switch operation & 7 {
        case 0, 1:
            encoder.append(ConstantHeader(number: number), of: constants)
            return Self.header("x-constant-\(number)", values[number])
        case 2:
            let value = Array(input.bytes(Int(input.byte()) * 4))
            value.withUnsafeBufferPointer {
                encoder.append(unique: $0, named: ConstantHeader(number: 3), of: constants)
            }
            return Self.header("x-name-3", value)
        case 3:
            // RFC 7541's static table: 4 is `:path`.
            let value = Array(input.bytes(Int(input.byte())))
            let start = encoder.appendUnique(staticName: 4, count: value.count)
            for (index, byte) in value.enumerated() { start[index] = byte }
            return Self.header(":path", value)
        case 4:
            encoder.append(staticIndex: 3)
            return Self.header(":method", "POST".utf8)
        default: return appendRepeated(operation, max(4, name.number), &input)
        }
    }

    private mutating func appendRepeated(
        _ operation: UInt8, _ number: Int, _ input: inout FuzzInput
    ) -> [UInt8] {
        let name = ConstantHeader(number: number)
        if operation & 7 == 6 || repeated[number] == nil {
            repeated[number] = Array(input.bytes(Int(input.byte()) * 16))
            encoder.forget(name)
        }
        let value = repeated[number]!
        value.withUnsafeBufferPointer {
            encoder.append(repeated: $0, named: name, of: constants)
        }
        return Self.header("x-name-\(number)", value)
    }

    private func decoded() throws -> [[UInt8]] {
        let block = ExactBytes(encoder.bytes)
        var headers: [[UInt8]] = []
        var next = block.lent.bindMemory(to: UInt8.self).baseAddress
        var count = block.lent.count
        while true {
            var field = nghttp2_nv()
            var flags: CInt = 0
            let used = nghttp2_hd_inflate_hd2(decoder, &field, &flags, next, count, 1)
            try promise(used >= 0, "the decoder refuses the block: \(used)")
            next = next.map { $0 + used }
            count -= used
            if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
                let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
                headers.append(Self.header(String(decoding: name, as: UTF8.self), value))
            }
            if UInt32(flags) & NGHTTP2_HD_INFLATE_FINAL.rawValue != 0 { break }
            try promise(used > 0 || flags != 0, "the decoder stands still")
        }
        nghttp2_hd_inflate_end_headers(decoder)
        return withExtendedLifetime(block) { headers }
    }

    /// No name has a colon behind its first byte.
    private static func header(_ name: String, _ value: some Sequence<UInt8>) -> [UInt8] {
        Array(name.utf8) + [UInt8(ascii: ":")] + value
    }
}
