// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CSimdjson

/// Finds in a document's text what its tape does not have: the digits that a number was written with.
/// It goes forward only, so that whoever asks for one value after another goes through the document once.
struct JSONSource {
    private let tape: UnsafePointer<UInt64>
    private let text: UnsafePointer<UInt8>
    /// Where scalars, brackets, colons and commas are in the text, in order.
    private let positions: UnsafePointer<UInt32>
    /// The scalars before this word of the tape are those before this position.
    private var word = 1
    private var position = 0

    init(of value: JSONValue) {
        tape = value.tape
        let tail = value.tail
        text = UnsafePointer(bitPattern: UInt(tail[0]))!
        positions = UnsafePointer(bitPattern: UInt(tail[1]))!
    }

    /// A number as it is written.
    mutating func number(at index: Int) -> UnsafeRawBufferPointer {
        let start = text + start(of: index)
        var count = 1
        while Self.isOfNumber(start[count]) { count += 1 }
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    /// - Parameter index: the word of a scalar, at or after that of the call before.
    private mutating func start(of index: Int) -> Int {
        assert(index >= word, "a source is read forward only")
        while word < index {
            let mark = JSONValue.Mark(word: tape[word])
            word += mark.words
            if mark.isScalar {
                _ = nextScalar()
                position += 1
            }
        }
        return nextScalar()
    }

    private mutating func nextScalar() -> Int {
        while Self.isPunctuation(text[Int(positions[position])]) { position += 1 }
        return Int(positions[position])
    }

    private static func isPunctuation(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "]"),
            UInt8(ascii: ":"), UInt8(ascii: ","):
            true
        default: false
        }
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}

extension JSONValue {
    /// What the parser writes after the tape.
    fileprivate var tail: UnsafePointer<UInt64> {
        tape + Int(tape[0] & 0x00FF_FFFF_FFFF_FFFF)
    }

    /// Whether it may have numbers that no double or integer of 64 bits is.
    package var hasMendedNumbers: Bool { tail[2] & UInt64(CSIMDJSON_MENDED_NUMBERS) != 0 }

    var writtenNumber: UnsafeRawBufferPointer {
        var source = JSONSource(of: self)
        return source.number(at: index)
    }

    /// Whether strings of its document may have U+FFFD in place of a lone surrogate.
    package var hasMendedStrings: Bool { tail[2] & UInt64(CSIMDJSON_MENDED_STRINGS) != 0 }

    /// Whether the string may have U+FFFD in place of a lone surrogate, so that it names nothing.
    package var hasLoneSurrogate: Bool {
        hasMendedStrings && (string.map(Self.hasReplacement) ?? false)
    }

    private static func hasReplacement(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count >= 3 else { return false }
        return (0...(text.count - 3)).contains {
            text[$0] == 0xEF && text[$0 + 1] == 0xBF && text[$0 + 2] == 0xBD
        }
    }
}

extension JSONValue.Mark {
    fileprivate var isScalar: Bool {
        switch self {
        case .string, .signed, .unsigned, .double, .yes, .no, .null: true
        default: false
        }
    }

    /// How many words of the tape it takes, without what is inside.
    fileprivate var words: Int {
        switch self {
        case .signed, .unsigned, .double: 2
        default: 1
        }
    }
}
