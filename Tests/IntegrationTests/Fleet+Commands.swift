// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

extension Fleet {
    /// Runs a command with the fleet's configuration, in which these texts are replaced.
    func command(
        _ arguments: [String], changing changes: [String: String] = [:], input: String = ""
    ) async throws -> CommandResult {
        let file = try configuration(changing: changes)
        return try await run(arguments + ["--config", file.path], input: input)
    }

    /// A file with the fleet's configuration, in which these texts are replaced.
    func configuration(changing changes: [String: String]) throws -> URL {
        var text = try String(contentsOf: configurationFile, encoding: .utf8)
        for (old, new) in changes.sorted(by: { $0.key < $1.key }) {
            try #require(text.contains(old), "the configuration has no \(old)")
            text = text.replacing(old, with: new)
        }
        let file = directory.appending(path: "\(UUID().uuidString).yaml")
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file
    }
}

extension CommandResult {
    var lines: [Substring] { output.split(separator: "\n") }

    /// Expects each of these texts in the output.
    func expect(_ texts: String..., sourceLocation: SourceLocation = #_sourceLocation) {
        for text in texts where !output.contains(text) {
            Issue.record("no '\(text)' in\n\(output)", sourceLocation: sourceLocation)
        }
    }
}
