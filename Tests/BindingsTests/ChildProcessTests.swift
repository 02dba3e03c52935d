// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import LinuxIO
import Testing

/// Each test starts its programs from its own thread, and is done with them before it returns.
@Suite struct `Child process` {
    private let output = FileManager.default.temporaryDirectory
        .appending(path: "child-\(UUID().uuidString)")

    private func shell(_ script: String, environment: [String] = []) throws -> ChildProcess {
        try ChildProcess(
            executable: "/bin/sh", arguments: ["-c", script], environment: environment,
            output: output.path)
    }

    private func ending(_ child: ChildProcess) -> ChildProcess.Ending? {
        let patience = Patience()
        while child.poll() == nil, !patience.isOver { usleep(2000) }
        return child.poll()
    }

    private var written: String {
        (try? String(contentsOf: output, encoding: .utf8)) ?? ""
    }

    @Test func `a child process gets its arguments, its environment and nothing else`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let child = try shell(
            "echo $WORD; echo wrong >&2; ls /proc/$$/fd; exit 7",
            environment: [
                "WORD=hello"
            ])
        #expect(ending(child) == .exited(7))
        #expect(written.split(separator: "\n").prefix(2) == ["hello", "wrong"])
        // Three streams; the shell opens what it needs above 9.
        let descriptors = written.split(separator: "\n").dropFirst(2).compactMap { Int($0) }
        #expect(descriptors.filter { $0 < 10 } == [0, 1, 2])
    }

    @Test func `a child process takes lines, and is a process group of its own`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let child = try shell("read line; echo got $line")
        #expect(getpgid(child.identifier) != getpgrp())
        #expect(child.say("one"))
        #expect(ending(child) == .exited(0))
        #expect(written == "got one\n")
    }

    @Test func `a child process is told apart when a signal ended it, and is not signalled after`()
        throws
    {
        defer { try? FileManager.default.removeItem(at: output) }
        let child = try shell("sleep 60")
        child.signal(SIGTERM)
        #expect(ending(child) == .killed(signal: SIGTERM))
        child.signal(SIGKILL)
        #expect(child.poll() == .killed(signal: SIGTERM))
    }

    @Test func `a child process ignores no signal that we ignore`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let before = signal(SIGINT, SIG_IGN)
        defer { signal(SIGINT, before) }
        #expect(ending(try shell("kill -INT $$; sleep 60")) == .killed(signal: SIGINT))
    }

    @Test func `a child process is killed when it is let go`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let identifier = try {
            let child = try shell("trap '' TERM; exec sleep 60")
            return child.identifier
        }()
        #expect(kill(identifier, 0) == -1)
    }

    @Test func `a child process is killed when the thread that started it ends`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let output = output.path
        let thread = try NamedThread.start(name: "parent") {
            // Let go of by nobody: only the kernel ends it.
            let child = try? ChildProcess(
                executable: "/bin/sh", arguments: ["-c", "echo $$; exec sleep 60"],
                environment: [], output: output)
            if let child { _ = Unmanaged.passRetained(child) }
            let patience = Patience()
            while (try? String(contentsOfFile: output, encoding: .utf8))?.isEmpty ?? true,
                !patience.isOver
            { usleep(2000) }
        }
        thread.join()
        let identifier = try #require(Int32(written.dropLast()))
        var status: CInt = 0
        #expect(waitpid(identifier, &status, 0) == identifier)
        #expect(status & 0x7F == SIGKILL)
    }

    @Test func `a child process that cannot be executed exits with 127`() throws {
        defer { try? FileManager.default.removeItem(at: output) }
        let child = try ChildProcess(
            executable: "/nowhere", arguments: [], environment: [], output: output.path)
        #expect(ending(child) == .exited(127))
    }
}
