// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@Suite struct `lamplighter-lab verify` {
    typealias Run = RecordedRun

    private struct Result {
        var status: Int32
        var output: String
        var errors: String
    }

    private func check(_ run: Run, _ more: [String] = []) throws -> Result {
        try run.inDirectory { directory in
            try execute(
                [
                    "--events", try run.write(run.events, "events", directory),
                    "--answers", try run.write(run.answers, "answers", directory),
                    "--registrations", try run.write(run.registrations, "tokens", directory),
                ] + more)
        }
    }

    /// Its output is small enough for a pipe to hold.
    private func execute(_ arguments: [String]) throws -> Result {
        let process = Process()
        let (output, errors) = (Pipe(), Pipe())
        // It is built beside the tests.
        process.executableURL = URL(filePath: CommandLine.arguments[0])
            .deletingLastPathComponent().appending(path: "lamplighter-lab")
        process.arguments = ["verify"] + arguments
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus,
            output: String(decoding: output.fileHandleForReading.availableData, as: UTF8.self),
            errors: String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self))
    }

    @Test func `verify ends with 0 and one line of JSON when nothing was lost`() throws {
        let result = try check(Run(), ["--kills", "3"])
        #expect(result.status == 0)
        #expect(result.output.hasPrefix(#"{"events":100,"obligations":200,"accepted":200,"#))
        #expect(result.output.hasSuffix("}\n"))
        #expect(result.output.split(separator: "\n").count == 1)
        #expect(result.errors.contains("200 obligations · 3 kills · 0 lost · 0.0 % duplicates"))
    }

    @Test func `verify ends with 1 when an accepted line was deleted, and names the loss`() throws {
        var run = Run()
        run.answers.removeLast()
        let result = try check(run)
        #expect(result.status == 1)
        #expect(result.output.contains(#""lost":1,"#))
        #expect(result.errors.contains("lost: event events/0/99, token "))
        #expect(!result.errors.contains(Run.tokens[1]))
    }

    @Test func `verify ends with 64 when it is used wrongly`() throws {
        #expect(try execute([]).status == 64)
        #expect(try check(Run(), ["--registration-grace", "-1"]).status == 64)
    }

    @Test func `verify ends with 65 when nothing was owed, since that proves nothing`() throws {
        var run = Run()
        run.registrations = []
        let result = try check(run)
        #expect(result.status == 65)
        #expect(result.output.contains(#""obligations":0,"#))
        #expect(result.errors.contains("nothing was owed"))
    }

    @Test func `verify ends with 65 when an input cannot be read`() throws {
        var run = Run()
        run.answers[3] = "[]"
        let result = try check(run)
        #expect(result.status == 65)
        #expect(result.output.isEmpty)
        #expect(result.errors.contains("answers, line 4"))
    }
}
