// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import SwiftParser
import SwiftSyntax

/// What becomes of one file: one line of the output.
struct MutatedFile: Encodable {
    let file: String
    /// All mutants of the file.
    let mutants: [Mutant]
    /// The file with its mutants, but those left out, in switchable form.
    let text: String
}

/// `mutation-operators [--without ID,ID…] FILE…` prints one JSON object for each file.
@main
struct MutationOperators {
    static func main() throws {
        var arguments = CommandLine.arguments.dropFirst()
        var leftOut: Set<UInt32> = []
        if arguments.first == "--without" {
            arguments = arguments.dropFirst()
            let list = arguments.popFirst() ?? ""
            leftOut = Set(list.split(separator: ",").compactMap { UInt32($0) })
        }
        guard !arguments.isEmpty else {
            FileHandle.standardError.write(
                Data("usage: mutation-operators [--without ID,ID…] FILE…\n".utf8))
            exit(2)
        }
        var identifiers = Identifiers()
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        for path in arguments {
            let file = try mutated(path, &identifiers, without: leftOut)
            FileHandle.standardOutput.write(try encoder.encode(file) + Data("\n".utf8))
        }
    }

    static func mutated(
        _ path: String, _ identifiers: inout Identifiers, without leftOut: Set<UInt32>
    ) throws -> MutatedFile {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let finder = MutantFinder(file: path, Parser.parse(source: text))
        let mutants = finder.mutants.map { mutant in
            var mutant = mutant
            mutant.id = identifiers.identifier(of: mutant.key)
            return mutant
        }
        let chosen = mutants.filter { !leftOut.contains($0.id) }
        return MutatedFile(
            file: path, mutants: mutants, text: Rewriting(Array(text.utf8), chosen).rewritten())
    }
}
