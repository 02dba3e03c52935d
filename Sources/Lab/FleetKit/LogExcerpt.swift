// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The lines of a program's log that say why it has ended.
package enum LogExcerpt {
    private static let linesMax = 3
    private static let blockLinesMax = 25
    /// Of a crash: what was said before it, and its stack trace.
    private static let crashLines = (before: 10, from: 40)
    /// How a trap, a failed assertion and Swift's backtrace begin; what follows them is addresses.
    private static let crashes = ["Fatal error", "Assertion", "Program crashed"]

    /// In one line: the beginning of a crash and what was said before it, otherwise the log's end.
    package static func text(of log: String) -> String {
        let lines = log.split(separator: "\n")
        let end = crash(in: lines).map { $0 + 1 } ?? lines.endIndex
        return lines[..<end].suffix(linesMax).joined(separator: " | ")
    }

    /// In several lines: a crash with its stack trace, otherwise the log's end.
    package static func block(of log: String) -> String {
        let lines = log.split(separator: "\n")
        guard let crash = crash(in: lines) else {
            return lines.suffix(blockLinesMax).joined(separator: "\n")
        }
        let first = max(0, crash - crashLines.before)
        return lines[first...].prefix(crash - first + crashLines.from).joined(separator: "\n")
    }

    private static func crash(in lines: [Substring]) -> Int? {
        lines.firstIndex { line in crashes.contains { line.contains($0) } }
    }
}
