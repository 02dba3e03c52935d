// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Selects the lines of a program's log that show why it has ended.
package enum LogExcerpt {
    private static let linesMax = 3
    private static let blockLinesMax = 25
    /// How many lines of a crash to keep: before its first line, and from it on.
    private static let crashLines = (before: 10, from: 40)
    /// How the reports of a trap, a failed assertion and Swift's backtrace begin.
    private static let crashes = ["Fatal error", "Assertion", "Program crashed"]

    /// The excerpt in one line: the beginning of a crash and the lines before it, otherwise the end
    /// of the log.
    package static func text(of log: String) -> String {
        let lines = log.split(separator: "\n")
        let end = crash(in: lines).map { $0 + 1 } ?? lines.endIndex
        return lines[..<end].suffix(linesMax).joined(separator: " | ")
    }

    /// The excerpt in several lines: a crash with its stack trace, otherwise the end of the log.
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
