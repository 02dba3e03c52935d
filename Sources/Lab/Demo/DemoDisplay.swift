// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO

/// Shows the figures: on the terminal's whole screen, or without a terminal in a line per second.
/// It also writes them to a recording.
final class DemoDisplay {
    private var terminal: Terminal?
    private let isColoured: Bool
    /// Whether lines go to standard error, because standard output is for the checker's JSON.
    private let usesStandardError: Bool
    private let recording: FileHandle?
    private var messagesTold = 0
    private var nextLine = ContinuousClock.now
    private var nextFrame = ContinuousClock.now
    private var lastPhase: DemoFigures.Phase?

    private static let frameInterval = Duration.milliseconds(100)

    init(isJSON: Bool, recording: String?) throws {
        let environment = ProcessInfo.processInfo.environment
        let size = Terminal.size
        let isCapable =
            Terminal.isThere && environment["TERM"] ?? "dumb" != "dumb"
            && size.columns >= DemoScreen.columns && size.rows >= DemoScreen.rows
        terminal = isCapable && !isJSON ? try Terminal() : nil
        isColoured = (environment["NO_COLOR"] ?? "").isEmpty
        usesStandardError = isJSON
        self.recording = try recording.map { path in
            guard let file = FileHandle.emptied(path: path) else {
                throw UnusablePath(
                    path, "it cannot be written", remedy: "name a file in a folder that is there")
            }
            return file
        }
    }

    var isInteractive: Bool { terminal != nil }

    /// Waits for this time, or until a key is pressed. Returns the keys.
    func pause(_ limit: Duration) -> [UInt8] {
        if let terminal { return terminal.keys(waiting: limit) }
        Thread.sleep(forTimeInterval: limit / .seconds(1))
        return []
    }

    /// Shows the figures.
    ///
    /// - Parameter messages: all messages of the run so far.
    func show(_ figures: DemoFigures, messages: [String]) {
        let now = ContinuousClock.now
        if !isInteractive {
            for message in messages[messagesTold...] { tell(message) }
            messagesTold = messages.count
        }
        guard now >= nextFrame || figures.phase != lastPhase else { return }
        nextFrame = now + Self.frameInterval
        lastPhase = figures.phase
        if let recording, let line = try? JSONEncoder().encode(figures) {
            recording.write(line + Data("\n".utf8))
        }
        if isInteractive {
            let text = TerminalText.screen(DemoScreen.rows(figures), isColoured: isColoured)
            StandardOutput.write(text)
        } else if now >= nextLine, figures.phase == .running || figures.phase == .draining {
            nextLine = now + .seconds(1)
            tell(DemoLine.text(figures))
        }
    }

    /// Restores the terminal and prints the messages to it. From now on output is line by line.
    func close(_ messages: [String]) {
        terminal = nil
        for message in messages[messagesTold...] { tell(message) }
        messagesTold = messages.count
    }

    /// Prints a line for people.
    func tell(_ line: String) {
        if usesStandardError { warn(line) } else { StandardOutput.write(line + "\n") }
    }

    /// Prints a line about a failure to standard error. Only to be called after `close`.
    func warn(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }
}

/// Formats figures as one line.
enum DemoLine {
    static func text(_ figures: DemoFigures) -> String {
        let phase = figures.phase == .running ? "" : " (no more events)"
        let parts = [
            DurationText.clock(figures.seconds) + phase,
            "\(figures.events.grouped) events (\(figures.eventsPerSecond.grouped)/s)",
            "\(figures.accepted.grouped) pushes (\(figures.acceptedPerSecond.grouped)/s)",
            "\(figures.waiting.grouped) waiting",
            "\(figures.inFlight.map(\.grouped) ?? "–") in flight",
            "lag \(figures.lag.map(\.grouped) ?? "–")",
            "p50 \(DurationText.milliseconds(figures.p50ms))",
            "p99 \(DurationText.milliseconds(figures.p99ms))",
        ]
        return parts.joined(separator: " · ")
    }
}
