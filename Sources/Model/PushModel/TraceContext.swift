// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The identifier that all spans of one trace share. Never 0.
package struct TraceID: Hashable, Sendable, BitwiseCopyable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// The identifier of one span of a trace. Never 0.
package struct SpanID: Hashable, Sendable, BitwiseCopyable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What a `traceparent` says (W3C Trace Context): the trace that a record belongs to, the span that
/// wrote it, and whether spans are recorded for that trace.
package struct TraceContext: Hashable, Sendable, BitwiseCopyable {
    package var trace: TraceID
    package var span: SpanID
    package var isSampled: Bool

    package init(trace: TraceID, span: SpanID, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// The length of a `traceparent` of version 00: `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
    package static let textBytes = 55
    /// The longest text that is looked at; that of a later version may be longer than version 00's.
    package static let textBytesMax = 128

    /// Reads a `traceparent`; nil if it is not one. Of a version after 00 the parts are read that
    /// version 00 has, as the recommendation says.
    package init?(_ text: UnsafeRawBufferPointer) {
        guard (Self.textBytes...Self.textBytesMax).contains(text.count),
            text[2] == Self.dash, text[35] == Self.dash, text[52] == Self.dash,
            let version = Self.number(text, 0..<2), version != 0xFF,
            version > 0 || text.count == Self.textBytes,
            text.count == Self.textBytes || text[Self.textBytes] == Self.dash,
            let high = Self.number(text, 3..<19), let low = Self.number(text, 19..<35),
            let span = Self.number(text, 36..<52), let flags = Self.number(text, 53..<55),
            high | low != 0, span != 0
        else { return nil }
        trace = TraceID(high: high, low: low)
        self.span = SpanID(rawValue: span)
        isSampled = flags & 1 == 1
    }

    /// The `traceparent` of version 00 that says this.
    package var text: String {
        "00-\(trace.text)-\(span.text)-\(isSampled ? "01" : "00")"
    }

    private static let dash = UInt8(ascii: "-")

    /// The number that lower-case hexadecimal digits write; nil if there is anything else.
    private static func number(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64? {
        var number: UInt64 = 0
        for index in range {
            switch text[index] {
            case let digit where (0x30...0x39).contains(digit):
                number = number << 4 | UInt64(digit - 0x30)
            case let digit where (0x61...0x66).contains(digit):
                number = number << 4 | UInt64(digit - 0x57)
            default: return nil
            }
        }
        return number
    }
}

extension TraceID {
    /// 32 hexadecimal digits.
    package var text: String { Hexadecimal.encode(bytes) }
    /// 16 bytes, the most significant first.
    package var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
}

extension SpanID {
    /// 16 hexadecimal digits.
    package var text: String { Hexadecimal.encode(bytes) }
    /// 8 bytes, the most significant first.
    package var bytes: [UInt8] { rawValue.bigEndianBytes }
}

extension UInt64 {
    fileprivate var bigEndianBytes: [UInt8] {
        withUnsafeBytes(of: bigEndian) { Array($0) }
    }
}
