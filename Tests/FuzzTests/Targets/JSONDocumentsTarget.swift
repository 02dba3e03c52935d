// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson

/// A document in JSON. The input: its text.
///
/// What is read is written again as a document that is read, and as the same one: also where numbers or
/// lone surrogates are in it that simdjson refuses.
enum JSONDocumentsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        guard let once = minified(input) else { return }
        let twice = once.withUnsafeBytes(minified)
        try promise(
            twice == once, "a document of \(once.count) bytes is another one when read again")
    }

    private static func minified(_ input: UnsafeRawBufferPointer) -> [UInt8]? {
        var parser = JSONParser(bytesMax: 1 << 20)
        guard let value = try? parser.parse(input) else { return nil }
        look(at: value)
        var output: [UInt8] = []
        return value.minify(into: &output, bytesMax: 1 << 20) ? output : nil
    }

    /// Asks each value for all that there is to know of it.
    private static func look(at value: JSONValue) {
        _ = (value.integer, value.wholeNumber, value.integerText, value.hugeNumber?.count)
        _ = (value.double, value.hasLoneSurrogate, value.shape)
        for member in value.object?.map(\.value) ?? value.array?.map(\.self) ?? [] {
            look(at: member)
        }
    }
}
