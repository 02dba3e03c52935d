// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A value of CBOR (RFC 8949), of the kinds that App Attest uses.
enum CBOR: Hashable, Sendable {
    case unsigned(UInt64)
    /// -1 minus this.
    case negative(UInt64)
    case bytes([UInt8])
    case text(String)
    case array([CBOR])
    /// Keys are texts, each once.
    case map([String: CBOR])

    /// Reads one value that takes all of the bytes. Refused are indefinite lengths, lengths and
    /// numbers not in their shortest form (which CTAP2 demands of all that App Attest sends), tags,
    /// floats and simple values, keys that are no text or come twice, and more than the bounds.
    /// - Returns: nil for what is refused.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax else { return nil }
        var decoder = CBORDecoder(bytes)
        guard let value = decoder.value(depth: Self.depthMax), decoder.isAtEnd else { return nil }
        self = value
    }

    /// An attestation has some 6 KiB, of which the receipt takes most.
    static let bytesMax = 32 << 10
    /// An attestation nests three deep, and its certificates are one deeper.
    static let depthMax = 4
    static let valuesMax = 64

    subscript(key: String) -> CBOR? {
        guard case .map(let members) = self else { return nil }
        return members[key]
    }

    var byteString: [UInt8]? {
        guard case .bytes(let bytes) = self else { return nil }
        return bytes
    }

    var array: [CBOR]? {
        guard case .array(let values) = self else { return nil }
        return values
    }
}

private struct CBORDecoder {
    private var reader: ByteReader
    private var valuesLeft = CBOR.valuesMax

    init(_ bytes: [UInt8]) { reader = ByteReader(bytes) }

    var isAtEnd: Bool { reader.rest.isEmpty }

    /// - Parameter depth: how many values may nest, this one included.
    mutating func value(depth: Int) -> CBOR? {
        guard depth > 0, valuesLeft > 0, let head = reader.byte(),
            let argument = argument(head & 0x1F)
        else { return nil }
        valuesLeft -= 1
        switch head >> 5 {
        case 0: return .unsigned(argument)
        case 1: return .negative(argument)
        case 2: return string(argument).map { .bytes($0) }
        case 3:
            return string(argument).flatMap { String(validating: $0, as: UTF8.self) }
                .map { .text($0) }
        case 4: return array(argument, depth: depth - 1)
        case 5: return map(argument, depth: depth - 1)
        default: return nil
        }
    }

    /// A number or a length, in its shortest form; 28 to 31 are reserved or indefinite.
    private mutating func argument(_ head: UInt8) -> UInt64? {
        guard head >= 24 else { return UInt64(head) }
        guard head <= 27, let number = reader.number(bytes: 1 << Int(head - 24)) else {
            return nil
        }
        let least: UInt64 = head == 24 ? 24 : 1 << (4 << UInt64(head - 24))
        return number >= least ? number : nil
    }

    private mutating func string(_ count: UInt64) -> [UInt8]? {
        Int(exactly: count).flatMap { reader.bytes($0) }
    }

    private mutating func array(_ count: UInt64, depth: Int) -> CBOR? {
        guard count <= UInt64(valuesLeft) else { return nil }
        var values: [CBOR] = []
        for _ in 0..<count {
            guard let value = value(depth: depth) else { return nil }
            values.append(value)
        }
        return .array(values)
    }

    private mutating func map(_ count: UInt64, depth: Int) -> CBOR? {
        guard count <= UInt64(valuesLeft) else { return nil }
        var members: [String: CBOR] = [:]
        for _ in 0..<count {
            guard case .text(let key)? = value(depth: depth), let value = value(depth: depth),
                members.updateValue(value, forKey: key) == nil
            else { return nil }
        }
        return .map(members)
    }
}
