// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

/// A message in protobuf's wire format, taken apart by a reader that shares nothing with the writer.
struct ProtobufMessage {
    enum Value: Equatable {
        case varint(UInt64)
        case fixed64(UInt64)
        case bytes([UInt8])
    }

    private(set) var fields: [(number: Int, value: Value)] = []

    init(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let tag = try Self.varint(&rest)
            let value: Value
            switch tag & 7 {
            case 0: value = .varint(try Self.varint(&rest))
            case 1:
                let eight = rest.prefix(8)
                try #require(eight.count == 8)
                rest = rest.dropFirst(8)
                value = .fixed64(eight.reversed().reduce(0) { $0 << 8 | UInt64($1) })
            case 2:
                let count = Int(try Self.varint(&rest))
                try #require(count <= rest.count)
                value = .bytes(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            default: throw Unknown(type: tag & 7)
            }
            fields.append((Int(tag >> 3), value))
        }
    }

    struct Unknown: Error {
        var type: UInt64
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) throws -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = bytes.popFirst() else { throw Unknown(type: 0) }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw Unknown(type: 0)
    }

    // MARK: Fields

    func values(_ number: Int) -> [Value] { fields.filter { $0.number == number }.map(\.value) }

    func messages(_ number: Int) throws -> [ProtobufMessage] {
        try values(number).map { value in
            guard case .bytes(let bytes) = value else { throw Unknown(type: 2) }
            return try ProtobufMessage(bytes)
        }
    }

    func message(_ number: Int) throws -> ProtobufMessage { try #require(messages(number).first) }

    func text(_ number: Int) -> String? {
        guard case .bytes(let bytes) = values(number).first else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    func number(_ number: Int) -> UInt64? {
        switch values(number).first {
        case .varint(let value), .fixed64(let value): value
        default: nil
        }
    }

    func data(_ number: Int) -> [UInt8]? {
        guard case .bytes(let bytes) = values(number).first else { return nil }
        return bytes
    }

    /// A packed field of 64-bit numbers.
    func packed(_ number: Int) -> [UInt64] {
        let bytes = data(number) ?? []
        return stride(from: 0, to: bytes.count, by: 8).map { start in
            bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// The attributes of OTLP that stand in this field, as text.
    func attributes(_ number: Int) throws -> [String: String] {
        var attributes: [String: String] = [:]
        for pair in try messages(number) {
            let value = try pair.message(2)
            let text =
                value.text(1) ?? value.values(2).first.map { "\($0 == .varint(1))" }
                ?? value.number(3).map { "\(Int64(bitPattern: $0))" }
            attributes[try #require(pair.text(1))] = text
        }
        return attributes
    }
}
