// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CSimdjson

/// Parses one JSON document at a time with simdjson, into buffers that it keeps.
///
/// The document is refused as a whole when it is not JSON, not UTF-8, or deeper or larger than the
/// bounds. Numbers of any size and escapes of lone surrogates are read: a number is kept as it was
/// written, and a lone surrogate is U+FFFD where its text is asked for. A byte order mark is skipped.
package struct JSONParser: ~Copyable {
    private let handle: OpaquePointer
    package let bytesMax: Int

    /// - Parameters:
    ///   - bytesMax: the largest document; the buffers take about 12 times the largest one seen.
    ///   - depthMax: how deep arrays and objects may nest.
    package init(bytesMax: Int = 1 << 20, depthMax: Int = 64) {
        guard let handle = csimdjson_parser_create(bytesMax, depthMax) else {
            fatalError("out of memory for a JSON parser")
        }
        self.handle = handle
        self.bytesMax = bytesMax
        precondition(hasKnownLayout(), "this simdjson lays out its tape as the reader expects")
    }

    deinit { csimdjson_parser_destroy(handle) }

    /// Parses a copy of `bytes`. The value, and every pointer taken from it, is valid until the
    /// next call of `parse` or the end of the parser, whichever comes first.
    package mutating func parse(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSONValue {
        var document = csimdjson_document()
        let status = csimdjson_parse(handle, bytes.baseAddress, bytes.count, &document)
        guard status == CSIMDJSON_OK, let tape = document.tape, let strings = document.strings
        else { throw JSONError(status, message: String(cString: document.message)) }
        return JSONValue(tape: tape, strings: strings, index: 1)
    }

    /// The tape is documented (doc/tape.md) but not an interface that simdjson promises to keep,
    /// so each parser looks once at a document that holds one of everything.
    private mutating func hasKnownLayout() -> Bool {
        var sample = #"{"a":[1,-1,1.50,18446744073709551616,true,false,null],"b":"\u00e9"}"#
        let minified = sample.withUTF8 { utf8 -> [UInt8]? in
            guard let value = try? parse(UnsafeRawBufferPointer(utf8)) else { return nil }
            var output: [UInt8] = []
            return value.minify(into: &output, bytesMax: 256) ? output : nil
        }
        let expected = #"{"a":[1,-1,1.50,18446744073709551616,true,false,null],"b":"é"}"#
        return minified.map { $0.elementsEqual(expected.utf8) } ?? false
    }
}

/// Why a document was refused.
package struct JSONError: Error, Sendable, Equatable {
    package enum Code: Sendable {
        case invalid, invalidUTF8, tooLarge, tooDeep, outOfMemory
    }

    package let code: Code
    /// simdjson's words; they never quote the document.
    package let message: String

    fileprivate init(_ status: csimdjson_status, message: String) {
        self.message = message
        switch status {
        case CSIMDJSON_INVALID_UTF8: code = .invalidUTF8
        case CSIMDJSON_TOO_LARGE: code = .tooLarge
        case CSIMDJSON_TOO_DEEP: code = .tooDeep
        case CSIMDJSON_NO_MEMORY: code = .outOfMemory
        default: code = .invalid
        }
    }
}
