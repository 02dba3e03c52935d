// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The lines of a program's log that say why it has ended.
enum LogExcerpt {
    private static let linesMax = 3
    /// How a trap, a failed assertion and Swift's backtrace begin; what follows them is addresses.
    private static let crashes = ["Fatal error", "Assertion", "Program crashed"]

    /// In one line: the beginning of a crash and what was said before it, otherwise the log's end.
    static func text(of log: String) -> String {
        let lines = log.split(separator: "\n")
        let crash = lines.firstIndex { line in crashes.contains { line.contains($0) } }
        let end = crash.map { $0 + 1 } ?? lines.endIndex
        return lines[..<end].suffix(linesMax).joined(separator: " | ")
    }
}
