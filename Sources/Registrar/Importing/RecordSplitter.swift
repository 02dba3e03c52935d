// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One record of an input, before anything of it is understood.
package struct SourceRecord {
    /// The line on which it begins, counted from 1.
    package let line: Int
    /// Valid during the call that lends it.
    package let bytes: UnsafeRawBufferPointer
    /// What is wrong with it as a whole; nil for a record that may be read.
    package let problem: String?
}

/// Cuts an input that comes in pieces into records of at most `recordBytesMax` bytes. One that is
/// longer is reported as a record with a problem, and what follows it is read on.
package struct RecordSplitter {
    package enum Form: Hashable, Sendable {
        /// One record a line; blank lines are none.
        case lines
        /// As lines, but a line feed between quotes is part of the record (RFC 4180).
        case quotedLines
    }

    /// Longer than any user of a vendor's export with all their devices.
    package static let recordBytesMax = 1 << 20

    private static var nothing: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private let form: Form
    /// The beginning of a record whose end has not come.
    private var partial: [UInt8] = []
    private var line = 1
    private var recordLine = 1
    private var isQuoted = false
    private var isTooLong = false
    private var isFirst = true

    package init(_ form: Form) { self.form = form }

    /// Lends each record that ends in these bytes.
    package mutating func take(
        _ bytes: UnsafeRawBufferPointer, _ body: (SourceRecord) throws -> Void
    ) rethrows {
        var start = 0
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\""), form == .quotedLines, !isTooLong { isQuoted.toggle() }
            guard byte == UInt8(ascii: "\n") else { continue }
            line += 1
            // A quote that nobody closes would hide all that follows.
            let isLong = partial.count + index - start > Self.recordBytesMax
            guard !isQuoted || isLong else { continue }
            try end(UnsafeRawBufferPointer(rebasing: bytes[start..<index]), body)
            start = index + 1
        }
        keep(UnsafeRawBufferPointer(rebasing: bytes[start...]))
    }

    /// Lends the record that no line feed ends.
    package mutating func finish(
        _ body: (SourceRecord) throws -> Void
    ) rethrows {
        if isQuoted, !isTooLong {
            try lend("a quote is opened that nothing closes", Self.nothing, body)
        } else if !partial.isEmpty || isTooLong {
            try end(Self.nothing, body)
        }
        reset()
    }

    private mutating func keep(_ bytes: UnsafeRawBufferPointer) {
        guard !isTooLong, partial.count + bytes.count <= Self.recordBytesMax else {
            isTooLong = true
            isQuoted = false
            partial = []
            return
        }
        partial.append(contentsOf: bytes)
    }

    private mutating func end(
        _ rest: UnsafeRawBufferPointer, _ body: (SourceRecord) throws -> Void
    ) rethrows {
        defer { reset() }
        if isTooLong || partial.count + rest.count > Self.recordBytesMax {
            return try lend("it is longer than \(Self.recordBytesMax) bytes", Self.nothing, body)
        }
        if partial.isEmpty { return try lend(nil, rest, body) }
        partial.append(contentsOf: rest)
        let whole = partial
        try whole.withUnsafeBytes { try lend(nil, $0, body) }
    }

    private mutating func reset() {
        partial.removeAll(keepingCapacity: partial.capacity <= 1 << 16)
        isTooLong = false
        isQuoted = false
        recordLine = line
    }

    private mutating func lend(
        _ problem: String?, _ bytes: UnsafeRawBufferPointer,
        _ body: (SourceRecord) throws -> Void
    ) rethrows {
        var bytes = bytes
        if isFirst, bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(3))
        }
        isFirst = false
        if bytes.last == UInt8(ascii: "\r") {
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropLast())
        }
        guard problem != nil || !bytes.isEmpty else { return }
        assert(bytes.count <= Self.recordBytesMax, "a record has at most recordBytesMax bytes")
        assert(recordLine <= line, "a record begins on a line that was reached")
        try body(SourceRecord(line: recordLine, bytes: bytes, problem: problem))
    }
}
