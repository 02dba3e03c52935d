// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Writes a file's text with all its mutants in switchable form. No line is added, so that the
/// compiler's line numbers are those of the original.
struct Rewriting {
    private let text: [UInt8]
    /// By start; of those that start together, the widest first.
    private let mutants: [Mutant]

    init(_ text: [UInt8], _ mutants: [Mutant]) {
        self.text = text
        self.mutants = mutants.sorted {
            ($0.edit.start, $1.edit.end, $1.edit.form.rank)
                < ($1.edit.start, $0.edit.end, $0.edit.form.rank)
        }
    }

    func rewritten() -> String {
        String(decoding: written(0, text.count, mutants[...]), as: UTF8.self)
    }

    /// The text of a range, of which these are the mutants.
    private func written(_ start: Int, _ end: Int, _ mutants: ArraySlice<Mutant>) -> [UInt8] {
        var result: [UInt8] = []
        var position = start
        var rest = mutants
        while let mutant = rest.popFirst() {
            let edit = mutant.edit
            let inner = rest.prefix { $0.edit.end <= edit.end }
            rest = rest.dropFirst(inner.count)
            result += text[position..<edit.start]
            result += switched(mutant, inner)
            position = edit.end
        }
        return result + text[position..<end]
    }

    private func switched(_ mutant: Mutant, _ inner: ArraySlice<Mutant>) -> [UInt8] {
        let edit = mutant.edit
        let id = "0x" + String(mutant.id, radix: 16)
        let original = written(edit.start, edit.end, inner)
        switch edit.form {
        case .negated:
            return "mutantNegates(\(id), ".utf8 + original + ")".utf8
        case .dropped:
            return "if !mutant(\(id)) { ".utf8 + original + " }".utf8
        case .replaced(let start, let end, let replacement):
            // The broken branch holds no mutants: one is chosen at a time, and there it is this one.
            let mutated = (text[edit.start..<start] + replacement.utf8 + text[end..<edit.end])
                .map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }
            return "(mutant(\(id)) ? ".utf8 + mutated + " : ".utf8 + original + ")".utf8
        }
    }
}

extension Edit.Form {
    /// Of forms around the same text: the one that must be outside comes first.
    fileprivate var rank: Int {
        switch self {
        case .dropped: 2
        case .negated: 1
        case .replaced: 0
        }
    }
}
