// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import LinuxIO
import Worker

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Says how workers do, what is wrong and what to do, by their admin listeners.",
        discussion: """
            Without a URL it asks the worker on this machine: at port 9465, or with --config at its \
            admin.port. Of several workers it prints a table, and what each says.

            Exit codes: 0 every worker has answered; 1 some have not; 69 none can be reached; 78 the \
            token is missing or wrong, or admin.port is not set.
            """)

    @Argument(help: "Where workers answer operators, such as http://worker-1:9465.")
    var urls: [String] = []

    @Option(
        name: .customLong("config"),
        help: "The configuration of the worker on this machine: its admin.port and its token.")
    var file: String?

    @Option(name: .customLong("token-file"), help: "The file of the token, as in admin.tokenFile.")
    var tokenFile: String?

    @Option(
        help: "How long a worker may take to answer, such as 30s; by default 5s.",
        transform: { try DurationArgument($0, atLeast: .seconds(1)) })
    var timeout: DurationArgument?

    @Flag(help: "Ask again every second, until Ctrl-C.")
    var watch = false

    @Flag(help: "Print what each worker answers, one JSON object a line (docs/status.md).")
    var json = false

    private typealias Answers = [WorkerInquiry.Answer<StatusReport>]

    func run() async throws {
        let configuration = try file.map {
            try Configuration.load(file: $0, environment: ProcessInfo.processInfo.environment)
        }
        let inquiry = try WorkerInquiry(urls, tokenFile: tokenFile, configuration)
        guard watch else { return try await once(inquiry) }
        let isDrawing = Terminal.isThere && !json
        if isDrawing { StandardOutput.write("\u{1B}[2J") }
        while true {
            let answers = await ask(inquiry)
            // Another try would not change that.
            if answers.allSatisfy(\.isRefused) { return try WorkerInquiry.report(answers) }
            let wasWritten =
                if isDrawing {
                    draw(text(answers) + answers.compactMap(\.problem))
                } else {
                    print(answers)
                }
            // Nobody reads any more, as after `| head`.
            guard wasWritten else { throw ExitCode.failure }
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Replaces what is on the terminal.
    private func draw(_ lines: [String]) -> Bool {
        let size = Terminal.size
        // The cursor ends below the lines: in the last row it would move all of them up.
        let rows = ScreenLines.fit(lines, columns: size.columns, rows: size.rows - 1)
        return StandardOutput.write(
            "\u{1B}[H" + rows.map { $0 + "\u{1B}[K\r\n" }.joined() + "\u{1B}[J")
    }

    private func print(_ answers: Answers) -> Bool {
        let problems = answers.compactMap(\.problem)
        // Programs read the JSON, so that problems are no part of it.
        if json { for problem in problems { StandardError.write(problem) } }
        let lines = text(answers) + (json ? [] : problems + [""])
        return StandardOutput.write(lines.map { $0 + "\n" }.joined())
    }

    private func once(_ inquiry: WorkerInquiry) async throws {
        let answers = await ask(inquiry)
        StandardOutput.write(text(answers).map { $0 + "\n" }.joined())
        try WorkerInquiry.report(answers)
    }

    private func ask(_ inquiry: WorkerInquiry) async -> Answers {
        await inquiry.ask(
            path: "/status", within: timeout?.duration ?? .seconds(5),
            connecting: timeout?.duration ?? .seconds(3), as: StatusReport.self)
    }

    private func text(_ answers: Answers) -> [String] {
        let reports = answers.compactMap(\.value)
        if json { return reports.map { TerminalText.visible(json: $0.json) } }
        if answers.count == 1 { return reports.first?.lines ?? [] }
        return reports.isEmpty ? [] : StatusReport.table(reports)
    }
}
