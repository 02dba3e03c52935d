// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A value of the document that a `JSONParser` parsed last: a position on simdjson's tape. Reading
/// it allocates nothing and copies nothing; it must not outlive the document.
package struct JSONValue {
    package enum Kind: Sendable {
        case object, array, string, number, bool, null
    }

    let tape: UnsafePointer<UInt64>
    let strings: UnsafePointer<UInt8>
    let index: Int

    package var kind: Kind {
        switch mark {
        case .object: .object
        case .array: .array
        case .string: .string
        case .signed, .unsigned, .double: .number
        case .yes, .no: .bool
        default: .null
        }
    }

    package var isNull: Bool { mark == .null }

    /// The bytes of a string, unescaped: UTF-8, and possibly with zero bytes inside.
    package var string: UnsafeRawBufferPointer? {
        mark == .string ? text(at: index) : nil
    }

    /// The value of a number that is written without fraction and exponent, if it fits.
    package var integer: Int64? {
        switch mark {
        case .signed: Int64(bitPattern: tape[index + 1])
        case .unsigned: Int64(exactly: tape[index + 1])
        default: nil
        }
    }

    /// The same as far as 128 bits hold it.
    package var wholeNumber: Int128? {
        switch mark {
        case .signed: Int128(Int64(bitPattern: tape[index + 1]))
        case .unsigned: Int128(tape[index + 1])
        case .double where hasMendedNumbers: integerText.flatMap { Int128($0) }
        default: nil
        }
    }

    /// The digits of a number that is written without fraction and exponent, and its sign.
    package var integerText: String? {
        switch mark {
        case .signed: return Int64(bitPattern: tape[index + 1]).description
        case .unsigned: return tape[index + 1].description
        case .double where hasMendedNumbers:
            let text = writtenNumber
            guard text.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") })
            else { return nil }
            return String(decoding: text, as: UTF8.self)
        default: return nil
        }
    }

    /// The text of a number that is beyond a double, or may be.
    package var hugeNumber: UnsafeRawBufferPointer? {
        mark == .double && hasMendedNumbers ? writtenNumber : nil
    }

    /// The value of any number; one with more digits than a double has is rounded, and one that is too
    /// large for it is 9e307.
    package var double: Double? {
        switch mark {
        case .signed: Double(Int64(bitPattern: tape[index + 1]))
        case .unsigned: Double(tape[index + 1])
        case .double: Double(bitPattern: tape[index + 1])
        default: nil
        }
    }

    package var bool: Bool? {
        switch mark {
        case .yes: true
        case .no: false
        default: nil
        }
    }

    package var object: JSONObject? { mark == .object ? JSONObject(value: self) : nil }

    package var array: JSONArray? { mark == .array ? JSONArray(value: self) : nil }

    // MARK: The tape

    /// The top byte of a word of the tape: what the word is.
    struct Mark: Equatable {
        let character: UInt8
        init(_ character: Unicode.Scalar) { self.character = UInt8(character.value) }
        init(word: UInt64) { character = UInt8(word >> 56) }

        static let object = Mark("{")
        static let array = Mark("[")
        static let string = Mark("\"")
        static let signed = Mark("l")
        static let unsigned = Mark("u")
        static let double = Mark("d")
        static let yes = Mark("t")
        static let no = Mark("f")
        static let null = Mark("n")

        static func ~= (pattern: Mark, value: Mark) -> Bool { pattern == value }
    }

    var mark: Mark { Mark(word: tape[index]) }

    /// Where the value after this one begins.
    var end: Int {
        switch mark {
        // The upper 24 bits of the payload count the members.
        case .object, .array: Int(tape[index] & 0xFFFF_FFFF)
        case .signed, .unsigned, .double: index + 2
        default: index + 1
        }
    }

    /// The text of a string. Strings are stored apart from the tape, each after its length.
    func text(at index: Int) -> UnsafeRawBufferPointer {
        let offset = Int(tape[index] & 0x00FF_FFFF_FFFF_FFFF)
        let start = UnsafeRawPointer(strings + offset)
        let count = start.loadUnaligned(as: UInt32.self)
        return UnsafeRawBufferPointer(start: start + 4, count: Int(count))
    }

    func sibling(at index: Int) -> JSONValue {
        JSONValue(tape: tape, strings: strings, index: index)
    }
}

/// The members of an object in the order they are written, duplicates included.
package struct JSONObject: Sequence {
    package typealias Element = (key: UnsafeRawBufferPointer, value: JSONValue)

    package let value: JSONValue

    package var isEmpty: Bool { value.index + 2 == value.end }

    /// The last member of this name, so that a duplicate replaces what came before it.
    package subscript(name: StaticString) -> JSONValue? {
        var found: JSONValue?
        for member in self where member.key.equals(name) { found = member.value }
        return found
    }

    package func makeIterator() -> Iterator {
        Iterator(value: value, position: value.index + 1, last: value.end - 1)
    }

    package struct Iterator: IteratorProtocol {
        let value: JSONValue
        var position: Int
        let last: Int

        package mutating func next() -> Element? {
            guard position < last else { return nil }
            let key = value.text(at: position)
            let member = value.sibling(at: position + 1)
            position = member.end
            return (key, member)
        }
    }
}

package struct JSONArray: Sequence {
    package let value: JSONValue

    package var isEmpty: Bool { value.index + 2 == value.end }

    package func makeIterator() -> Iterator {
        Iterator(value: value, position: value.index + 1, last: value.end - 1)
    }

    package struct Iterator: IteratorProtocol {
        let value: JSONValue
        var position: Int
        let last: Int

        package mutating func next() -> JSONValue? {
            guard position < last else { return nil }
            let element = value.sibling(at: position)
            position = element.end
            return element
        }
    }
}
