// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Takes the text of a .proto file apart into words, without its comments.
struct ProtoScanner {
    enum Token: Equatable {
        /// A name, a keyword, or several of them with dots between.
        case word(String)
        /// A number as it is written.
        case number(String)
        /// A string without its quotes and with its escapes resolved.
        case string([UInt8])
        /// Any other character.
        case symbol(UInt8)
        case end

        static func symbol(_ character: Unicode.Scalar) -> Token {
            .symbol(UInt8(ascii: character))
        }
    }

    private let text: [UInt8]
    private var position = 0
    private(set) var line = 1
    /// The token that is read next.
    private(set) var next = Token.end

    init(_ text: [UInt8]) throws(UnusableSchema) {
        self.text = text
        try advance()
    }

    func problem(_ words: String) -> UnusableSchema {
        UnusableSchema("the Protobuf schema \(words), in line \(line)")
    }

    /// Takes the next token.
    mutating func take() throws(UnusableSchema) -> Token {
        let token = next
        try advance()
        return token
    }

    /// Takes the next token if it is this one.
    mutating func take(_ token: Token) throws(UnusableSchema) -> Bool {
        guard next == token else { return false }
        try advance()
        return true
    }

    mutating func expect(_ token: Token, _ words: String) throws(UnusableSchema) {
        guard try take(token) else { throw problem("lacks \(words)") }
    }

    mutating func word(_ words: String) throws(UnusableSchema) -> String {
        guard case .word(let word) = next else { throw problem("lacks \(words)") }
        try advance()
        return word
    }

    private mutating func advance() throws(UnusableSchema) {
        try skipSpace()
        guard position < text.count else {
            next = .end
            return
        }
        let byte = text[position]
        let start = position
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): next = .string(try string(byte))
        case _ where Self.isWord(byte) || startsDotted:
            while position < text.count,
                Self.isWord(text[position]) || text[position] == UInt8(ascii: ".")
            {
                position += 1
            }
            guard position - start <= SchemaLimits.nameBytesMax else {
                throw problem("has a name of more than \(SchemaLimits.nameBytesMax) bytes")
            }
            let word = String(decoding: text[start..<position], as: UTF8.self)
            next = (0x30...0x39).contains(byte) ? .number(word) : .word(word)
        default:
            position += 1
            next = .symbol(byte)
        }
    }

    /// Whether a full name begins here, such as `.shop.Order`.
    private var startsDotted: Bool {
        text[position] == UInt8(ascii: ".") && position + 1 < text.count
            && Self.isWord(text[position + 1])
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    // MARK: What is passed over

    private mutating func skipSpace() throws(UnusableSchema) {
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "\n"):
                line += 1
                position += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), 0x0B, 0x0C:
                position += 1
            case UInt8(ascii: "/") where follows("/"):
                while position < text.count, text[position] != UInt8(ascii: "\n") { position += 1 }
            case UInt8(ascii: "/") where follows("*"): try skipBlockComment()
            // A byte order mark.
            case 0xEF where position == 0 && text.starts(with: [0xEF, 0xBB, 0xBF]): position = 3
            default: return
            }
        }
    }

    private func follows(_ character: Unicode.Scalar) -> Bool {
        position + 1 < text.count && text[position + 1] == UInt8(ascii: character)
    }

    private mutating func skipBlockComment() throws(UnusableSchema) {
        position += 2
        while position < text.count {
            if text[position] == UInt8(ascii: "*"), follows("/") {
                position += 2
                return
            }
            if text[position] == UInt8(ascii: "\n") { line += 1 }
            position += 1
        }
        throw problem("ends in a comment")
    }

    // MARK: Strings

    private mutating func string(_ quote: UInt8) throws(UnusableSchema) -> [UInt8] {
        position += 1
        var content: [UInt8] = []
        while position < text.count, text[position] != UInt8(ascii: "\n") {
            let byte = text[position]
            position += 1
            if byte == quote { return content }
            guard byte == UInt8(ascii: "\\") else {
                content.append(byte)
                continue
            }
            guard position < text.count else { break }
            // Of what strings are read for here, nothing needs an escape but quotes and backslashes.
            content.append(text[position])
            position += 1
        }
        throw problem("has a string without an end")
    }
}
