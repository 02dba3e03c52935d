// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Simdjson

/// The texts of a program, one after the other, so that writing one copies bytes and touches no other
/// memory.
struct SchemaTexts: Sendable {
    /// Where a text is.
    struct Place: Sendable, Hashable {
        var start: Int32 = 0
        var count: Int32 = 0

        var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    private(set) var bytes: [UInt8] = []

    mutating func add(_ text: some Collection<UInt8>) -> Place {
        let start = bytes.count
        bytes.append(contentsOf: text)
        return Place(start: Int32(start), count: Int32(bytes.count - start))
    }

    /// A JSON string of the name. Names of schemas that have come as JSON are UTF-8.
    mutating func add(quoted name: [UInt8]) -> Place {
        let start = bytes.count
        name.withUnsafeBytes { JSONString.append($0, to: &bytes) }
        return Place(start: Int32(start), count: Int32(bytes.count - start))
    }

    /// What is before the value of a member: a comma unless it is the first, and the name.
    mutating func add(member name: [UInt8], isFirst: Bool) -> Place {
        let start = bytes.count
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        name.withUnsafeBytes { JSONString.append($0, to: &bytes) }
        bytes.append(UInt8(ascii: ":"))
        return Place(start: Int32(start), count: Int32(bytes.count - start))
    }

    func write(_ place: Place, to output: inout OutputBuffer) {
        output.append(bytes, place.range)
    }

    func string(_ place: Place) -> String { String(decoding: bytes[place.range], as: UTF8.self) }

    func holds(_ text: UnsafeRawBufferPointer, at place: Place) -> Bool {
        guard text.count == Int(place.count) else { return false }
        return bytes.withUnsafeBytes {
            UnsafeRawBufferPointer(rebasing: $0[place.range]).equals(text)
        }
    }
}
