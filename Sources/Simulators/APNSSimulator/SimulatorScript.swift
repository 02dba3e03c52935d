// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A file of commands with their times:
///
///     from first request      # or: from start, which is the default; before all others
///     at 5s answer 503:ServiceUnavailable share 30% for 10s
///     every 30s goaway Shutdown
///
/// `every` acts for the first time after one period. Empty lines and text after `#` are ignored.
package struct SimulatorScript: Hashable, Sendable {
    package enum Origin: Hashable, Sendable {
        /// Times count from when the ports are open.
        case start
        /// Times count from the first request, even a refused one.
        case firstRequest
    }

    package struct Entry: Hashable, Sendable {
        package var after: Duration
        /// The period of the command; nil for once.
        package var period: Duration?
        /// The command, which was checked and is kept as text: it is carried out like a line of the
        /// control socket.
        package var command: String
    }

    package private(set) var origin = Origin.start
    /// The entries in the order of the file.
    package private(set) var entries: [Entry] = []

    /// The most lines that a script may have.
    package static let linesMax = 10_000
    /// The shortest period.
    private static let periodMin = Duration.milliseconds(10)

    package static let help = """
        A script has lines 'at TIME COMMAND' and 'every TIME COMMAND' and may begin with \
        'from first request'; otherwise times count from the start. '#' begins a comment.
        """

    /// Parses a script.
    ///
    /// - Throws: an error for the first wrong line; nothing of the script is then carried out.
    package init(_ text: String) throws(CommandError) {
        // CR LF is one character, which differs from "\n".
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        guard lines.count <= Self.linesMax else {
            throw CommandError(
                line: Self.linesMax + 1, word: 1, problem: "more than \(Self.linesMax) lines",
                remedy: "use every, or the control socket")
        }
        for (index, line) in lines.enumerated() {
            let told = line.prefix { $0 != "#" }
            if told.allSatisfy(\.isWhitespace) { continue }
            do throws(CommandError) {
                try read(String(told))
            } catch {
                throw CommandError(
                    line: index + 1, word: error.word, problem: error.problem,
                    remedy: error.remedy)
            }
        }
    }

    private mutating func read(_ line: String) throws(CommandError) {
        var words = CommandWords(line)
        switch try words.choice(["at", "every", "from"]) {
        case "from":
            guard entries.isEmpty else {
                throw words.error("'from' comes too late", remedy: "put it on the first line")
            }
            origin = try words.choice(["start", "first"]) == "start" ? .start : .firstRequest
            if origin == .firstRequest { _ = try words.choice(["request"]) }
            try words.end()
        case "at":
            let time = try words.time()
            entries.append(Entry(after: time, period: nil, command: try Self.command(in: line)))
        default:
            let period = try words.time()
            guard period >= Self.periodMin else {
                throw words.error("this period is too short", remedy: "10ms is the least")
            }
            entries.append(
                Entry(after: period, period: period, command: try Self.command(in: line)))
        }
    }

    /// The command after the first two words of a line.
    private static func command(in line: String) throws(CommandError) -> String {
        let words = line.split(maxSplits: 2, whereSeparator: \.isWhitespace)
        let text = words.count > 2 ? String(words[2]) : ""
        do throws(CommandError) {
            switch try CommandLanguage.parse(text) {
            case .perform, .quit: return text
            case .status, .help:
                throw CommandError(
                    word: 1, problem: "'\(text)' has nobody to answer to",
                    remedy: "ask the control socket")
            }
        } catch {
            throw CommandError(
                word: error.word + 2, problem: error.problem, remedy: error.remedy)
        }
    }
}
