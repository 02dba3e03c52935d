// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Glibc
import Synchronization

/// A program under test, its output in a file. It never outlives the tests: whoever starts it ends
/// it, and what is left when the tests exit is killed.
final class ChildProcess: Sendable {
    let name: String
    let outputFile: URL
    private let process: Process
    private let input: Pipe?

    /// - Parameter input: written to standard input, which then ends; nil keeps it open for `say`.
    init(
        _ name: String, executable: URL, arguments: [String], outputFile: URL, input: String? = nil
    ) throws {
        self.name = name
        self.outputFile = outputFile
        _ = FileManager.default.createFile(atPath: outputFile.path, contents: nil)
        let output = try FileHandle(forWritingTo: outputFile)
        let process = Process()
        let pipe = Pipe()
        process.executableURL = executable
        process.arguments = arguments
        // Variables of that name are the configuration's; those for the tests are none of them.
        var environment = ProcessInfo.processInfo.environment.filter {
            !$0.key.hasPrefix("LAMPLIGHTER_")
        }
        // A crash of ours is worth a stack trace.
        environment["SWIFT_BACKTRACE"] = environment["SWIFT_BACKTRACE"] ?? "enable=yes"
        process.environment = environment
        process.standardInput = pipe
        process.standardOutput = output
        process.standardError = output
        self.process = process
        self.input = input == nil ? pipe : nil
        try process.run()
        let identifier = process.processIdentifier
        Self.living.withLock { _ = $0.insert(identifier) }
        _ = Self.endedAtExit
        try output.close()
        if let input {
            pipe.fileHandleForWriting.write(Data(input.utf8))
            try pipe.fileHandleForWriting.close()
        }
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    var isRunning: Bool {
        if process.isRunning { return true }
        let identifier = process.processIdentifier
        Self.living.withLock { _ = $0.remove(identifier) }
        return false
    }

    var identifier: pid_t { process.processIdentifier }

    func signal(_ number: Int32) {
        if isRunning { kill(process.processIdentifier, number) }
    }

    /// A line for a program that obeys its standard input.
    func say(_ line: String) { input?.fileHandleForWriting.write(Data((line + "\n").utf8)) }

    /// All that it has written so far.
    var output: String { (try? String(contentsOf: outputFile, encoding: .utf8)) ?? "" }

    /// Waits for its end: the exit code, or minus the signal that ended it. Kills what does not end.
    func finish(within limit: Duration) async throws -> Int32 {
        do {
            try await waitUntil("\(name) to end", within: limit) { !isRunning }
        } catch {
            signal(SIGKILL)
            throw Timeout(description: "\(error)\n\(tail)")
        }
        let status = process.terminationStatus
        return process.terminationReason == .exit ? status : -status
    }

    /// The end of the output, for a failure's message; of a crash, its beginning.
    var tail: String {
        let lines = output.split(separator: "\n")
        let crash = lines.firstIndex { $0.contains("Fatal error") || $0.contains("crashed") }
        let shown = crash.map { lines[max(0, $0 - 10)...].prefix(50) } ?? lines.suffix(25)
        return "--- \(name)\n\(shown.joined(separator: "\n"))"
    }

    private static let living = Mutex<Set<pid_t>>([])

    /// A test that traps or a fleet that was leaked must not leave brokers behind.
    private static let endedAtExit: Void = {
        atexit {
            for pid in ChildProcess.living.withLock({ $0 }) { kill(pid, SIGKILL) }
        }
    }()
}

struct Timeout: Error, CustomStringConvertible {
    let description: String
}

/// Asks again and again until the condition holds.
func waitUntil(
    _ what: String, within limit: Duration = .seconds(60), _ condition: () throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else {
            throw Timeout(description: "waited \(limit) for \(what)")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}
