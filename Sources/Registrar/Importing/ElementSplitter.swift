// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Cuts JSON documents, one after another and over as many lines as they like, into the objects that
/// matter: the elements of the first array in a document, or a document without an array itself. So
/// pages of a listing are read however large they are, and also what `jq` has made of them.
///
/// It finds where objects begin and end; what is between is the parser's to judge.
package struct ElementSplitter {
    private var partial: [UInt8] = []
    private var line = 1
    private var recordLine = 1
    /// The open brackets, outermost first; true is an object's.
    private var open: [Bool] = []
    /// How deep the objects are that are lent; nil while no array has been found in the document.
    private var elementDepth: Int?
    /// How deep the object is that is being kept; nil while none is.
    private var keptDepth: Int?
    private var isString = false
    private var isEscaped = false
    /// After something that cannot be read: nothing is looked at before the next line.
    private var isLost = false

    private static let depthMax = 64

    package init() {}

    package mutating func take(
        _ bytes: UnsafeRawBufferPointer, _ body: (SourceRecord) throws -> Void
    ) rethrows {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                line += 1
                isLost = false
            }
            if isLost { continue }
            if keptDepth != nil {
                partial.append(byte)
                if partial.count > RecordSplitter.recordBytesMax {
                    try lose(
                        "an object is longer than \(RecordSplitter.recordBytesMax) bytes", body)
                    continue
                }
            }
            if isString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            try structural(byte, body)
        }
    }

    package mutating func finish(
        _ body: (SourceRecord) throws -> Void
    ) rethrows {
        guard isString || !open.isEmpty else { return }
        try lose("the input ends within a JSON document", body)
    }

    private mutating func structural(
        _ byte: UInt8, _ body: (SourceRecord) throws -> Void
    ) rethrows {
        switch byte {
        case UInt8(ascii: "\""):
            guard !open.isEmpty else { return try lose("it is not a JSON object", body) }
            isString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let isObject = byte == UInt8(ascii: "{")
            guard open.count < Self.depthMax else {
                return try lose("it is nested more than \(Self.depthMax) deep", body)
            }
            begin(isObject)
            open.append(isObject)
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            guard open.popLast() == (byte == UInt8(ascii: "}")) else {
                return try lose("its brackets do not match", body)
            }
            if keptDepth == open.count { try lend(body) }
            if open.isEmpty { elementDepth = nil }
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"),
            UInt8(ascii: ","), 0xEF, 0xBB, 0xBF:
            break
        default:
            if open.isEmpty { try lose("it is not a JSON object", body) }
        }
    }

    private mutating func begin(_ isObject: Bool) {
        if !isObject {
            // The first array of a document, at most one object deep, has the elements.
            guard elementDepth == nil, open.count <= 1, open.first != false else { return }
            elementDepth = open.count + 1
            keptDepth = nil
            partial.removeAll(keepingCapacity: true)
            return
        }
        guard keptDepth == nil, open.count == elementDepth ?? 0 else { return }
        keptDepth = open.count
        recordLine = line
        partial = [UInt8(ascii: "{")]
    }

    private mutating func lend(_ body: (SourceRecord) throws -> Void) rethrows {
        assert(
            partial.first == UInt8(ascii: "{") && partial.last == UInt8(ascii: "}"),
            "an object that is lent begins and ends with its own braces")
        keptDepth = nil
        let whole = partial
        partial.removeAll(keepingCapacity: true)
        try whole.withUnsafeBytes {
            try body(SourceRecord(line: recordLine, bytes: $0, problem: nil))
        }
    }

    /// Reports what cannot be read, and goes on with the next line as if a document began there.
    private mutating func lose(
        _ problem: String, _ body: (SourceRecord) throws -> Void
    ) rethrows {
        let place = keptDepth == nil ? line : recordLine
        partial = []
        open = []
        elementDepth = nil
        keptDepth = nil
        isString = false
        isEscaped = false
        isLost = true
        try body(
            SourceRecord(
                line: place, bytes: UnsafeRawBufferPointer(start: nil, count: 0), problem: problem))
    }
}
