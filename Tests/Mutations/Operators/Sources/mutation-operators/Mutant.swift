// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One small way in which a file can be broken.
struct Mutant: Encodable {
    enum Operator: String, Encodable {
        case negate = "negate a condition"
        case bound = "off by one"
        case extreme = "swap min and max"
        case drop = "drop a statement"
    }

    /// Names the mutant to people, to the built program, and in the file of reached mutants, where it
    /// is an offset. It depends on the file, the declaration and the text, not on the line.
    var id: UInt32
    let `operator`: Operator
    let line: Int
    let column: Int
    let lastLine: Int
    /// The lines of the function that holds it.
    let scope: ClosedLines
    let before: String
    let after: String
    /// What is written around the text, or in place of it.
    let edit: Edit
    /// What the identifier is made of.
    let key: String

    private enum CodingKeys: CodingKey {
        case id, `operator`, line, column, lastLine, scope, before, after
    }
}

struct ClosedLines: Encodable {
    let first: Int
    let last: Int
}

/// How a text becomes one that a number switches. The text may hold other edits.
struct Edit {
    let start: Int
    let end: Int
    let form: Form

    enum Form {
        /// `text` → `mutantNegates(id, text)`
        case negated
        /// `text` → `if !mutant(id) { text }`
        case dropped
        /// `text` → `(mutant(id) ? text' : text)`, where text' has other bytes in this range.
        case replaced(start: Int, end: Int, by: String)
    }
}

/// Gives each mutant an identifier below `limit` that no other one has.
struct Identifiers {
    /// What is reached is a byte each in a sparse file of this size.
    static let limit: UInt32 = 1 << 24
    private var taken: Set<UInt32> = []

    /// FNV-1a, folded; the next free number where two are the same.
    mutating func identifier(of key: String) -> UInt32 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        var id = UInt32(truncatingIfNeeded: hash ^ (hash >> 24) ^ (hash >> 48)) % Self.limit
        // Zero means that nothing is broken.
        while id == 0 || !taken.insert(id).inserted { id = (id + 1) % Self.limit }
        return id
    }
}
