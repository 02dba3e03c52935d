// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One HTTP/2 frame as it is on the wire (RFC 9113, section 4.1).
struct HTTP2Frame: Sendable {
    enum Kind: UInt8, Sendable {
        case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate
        case continuation
    }

    /// Nothing, or the acknowledgement of SETTINGS and PING.
    static let acknowledgement: UInt8 = 0x1
    static let endOfStream: UInt8 = 0x1
    static let endOfHeaders: UInt8 = 0x4

    /// nil for a kind that RFC 9113 does not know.
    var kind: Kind?
    var flags: UInt8
    var stream: UInt32
    var payload: [UInt8]

    init(_ kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// Takes the first frame from `bytes`, beginning at `start`, which then lies behind it; nil when
    /// it has not come whole.
    init?(reading bytes: [UInt8], from start: inout Int) {
        guard bytes.count - start >= Self.headBytes else { return nil }
        let length = Int(Self.number(bytes[start..<start + 3]))
        let end = start + Self.headBytes + length
        guard bytes.count >= end else { return nil }
        kind = Kind(rawValue: bytes[start + 3])
        flags = bytes[start + 4]
        stream = Self.number(bytes[start + 5..<start + 9])
        payload = Array(bytes[start + Self.headBytes..<end])
        start = end
    }

    private static let headBytes = 9

    var bytes: [UInt8] {
        var bytes = Array(Self.bigEndian(UInt32(payload.count)).dropFirst())
        bytes += [kind?.rawValue ?? .max, flags]
        bytes += Self.bigEndian(stream)
        return bytes + payload
    }

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

    static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    // MARK: Header blocks

    /// Fields in full, which no table keeps (RFC 7541, section 6.2.2), so that each block stands for
    /// itself.
    static func block(_ fields: [(name: String, value: String)]) -> [UInt8] {
        fields.reduce(into: []) { $0 += [0] + text($1.name) + text($1.value) }
    }

    /// RFC 7541, sections 5.1 and 5.2: a length with a prefix of 7 bits, then the bytes.
    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var rest = bytes.count - 127
        var length: [UInt8] = [127]
        while rest >= 128 {
            length.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }
}
