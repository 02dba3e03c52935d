// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation

/// An HTTP server of the tests: a Python program with a folder of its own, which it gets as its
/// argument and where it writes the port that it listens on. It ends with the test.
final class PythonServer {
    let directory: ScratchDirectory
    private(set) var port = 0
    private var process = Process()
    /// The program's standard input. The program ends when this pipe is closed, however the tests
    /// end.
    private var input = Pipe()

    init(program: String) throws {
        directory = try ScratchDirectory()
        try write(program, to: "program.py")
        try write("", to: "requests")
    }

    deinit { stop() }

    /// On the port that it had, if it has been started before.
    func start(environment: [String: String] = [:]) throws {
        process = Process()
        input = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", directory.file("program.py"), directory.path]
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = input
        let log = KeptLogs.output(of: "python3")
        process.standardOutput = log
        process.standardError = log
        try process.run()
        let patience = Patience()
        while port == 0, !patience.isOver {
            port = read("port").flatMap { Int($0) } ?? 0
            usleep(5000)
        }
        if port == 0 { throw Timeout(description: "the server does not start") }
    }

    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Writes a file into the server's folder.
    func write(_ text: String, to name: String) throws {
        try text.write(toFile: directory.file(name), atomically: true, encoding: .utf8)
    }

    /// A file of the server's folder; nil if there is none.
    func read(_ name: String) -> String? {
        try? String(contentsOfFile: directory.file(name), encoding: .utf8)
    }

    /// Tells the program how to answer, by the words in its file `behaviour`.
    func behave(_ words: some CustomStringConvertible) {
        try! write(words.description, to: "behaviour")
    }

    /// The requests that have come, in order: a line of JSON each.
    func requests<Request: Decodable>() -> [Request] {
        (read("requests") ?? "").split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Request.self, from: Data($0.utf8))
        }
    }
}
