// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Simdjson

/// Refuses objects that have a member twice: of two values, one reader takes the first and another the
/// last (RFC 8259, 4), so that what was checked need not be what is stored.
package enum RepeatedMember {
    /// Among so few members each is compared with each, which allocates nothing.
    private static let comparedMax = 16

    /// Looks at one object.
    package static func check(_ object: JSONObject, at pointer: String) throws(InvalidMember) {
        guard let name = repeated(in: object) else { return }
        throw refusal(at: "\(pointer)/\(name)")
    }

    /// Looks at a value and all that is in it.
    package static func check(
        within value: JSONValue, at pointer: String
    ) throws(InvalidMember) {
        guard let place = place(in: value) else { return }
        throw refusal(at: pointer + place)
    }

    private static func refusal(at pointer: String) -> InvalidMember {
        InvalidMember(pointer, "the member is there twice", remedy: "send it once")
    }

    /// A JSON pointer; nil if there is none.
    private static func place(in value: JSONValue) -> String? {
        if let object = value.object {
            if let name = repeated(in: object) { return "/\(name)" }
            for (name, value) in object {
                guard let place = place(in: value) else { continue }
                return "/\(escaped(name))\(place)"
            }
        } else if let array = value.array {
            var index = 0
            for value in array {
                if let place = place(in: value) { return "/\(index)\(place)" }
                index += 1
            }
        }
        return nil
    }

    private static func repeated(in object: JSONObject) -> String? {
        var known: Set<[UInt8]> = []
        var count = 0
        for (name, _) in object {
            let isRepeated: Bool
            if count < comparedMax {
                isRepeated = object.prefix(count).contains { isEqual($0.key, name) }
            } else {
                if count == comparedMax { known = Set(object.prefix(count).map { Array($0.key) }) }
                isRepeated = !known.insert(Array(name)).inserted
            }
            if isRepeated { return escaped(name) }
            count += 1
        }
        return nil
    }

    private static func isEqual(
        _ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer
    ) -> Bool {
        one.count == other.count && one.elementsEqual(other)
    }

    private static func escaped(_ name: UnsafeRawBufferPointer) -> String {
        SnapshotReader.escaped(String(decoding: name, as: UTF8.self))
    }
}
