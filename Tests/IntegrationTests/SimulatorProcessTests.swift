// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// The simulators as programs: `make run-local` waits for their end.
@Suite(.serialized)
struct `A simulator as a process` {
    @Test(arguments: [SIGTERM, SIGINT])
    func `a simulator of Kafka ends when it is told to, whatever its standard input`(
        signal: Int32
    ) async throws {
        try await expectEnd(of: ["simulate", "kafka", "--topics", "t:1"], at: signal)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a simulator of APNs ends when it is told to`(signal: Int32) async throws {
        try await expectEnd(of: ["simulate", "apns", "--app", "com.example.Home"], at: signal)
    }

    @Test func `a simulator that crashes says so in one line, and exits 70`() async throws {
        let output = FileManager.default.temporaryDirectory
            .appending(path: "simulator-\(UUID().uuidString).log")
        defer { try? FileManager.default.removeItem(at: output) }
        let program = try Fleet.lab
        let process = try FleetProcess(
            "simulator", program: "/usr/bin/env",
            arguments: [
                "-u", "SWIFT_BACKTRACE", program, "simulate", "apns", "--app", "com.example.Home",
            ], log: output.path, input: "")
        try await waitUntil("the simulator to serve") { process.output.contains("127.0.0.1:") }
        process.signal(SIGSEGV)
        #expect(try await process.finish() == 70)
        let last = process.output.split(separator: "\n").last
        #expect(last?.hasPrefix("lamplighter-lab: internal error: SIGSEGV") == true)
        #expect(last?.contains("sent by process \(getpid())") == true)
    }

    @Test func `a simulator of Kafka that cannot write its bootstrap file says so with 78`()
        async throws
    {
        let output = FileManager.default.temporaryDirectory
            .appending(path: "simulator-\(UUID().uuidString).log")
        defer { try? FileManager.default.removeItem(at: output) }
        let process = try FleetProcess(
            "simulator", program: try Fleet.lab,
            arguments: ["simulate", "kafka", "--bootstrap-file", "/nowhere/x"],
            log: output.path, input: "")
        #expect(try await process.finish() == 78)
        #expect(
            process.output
                == "lamplighter-lab: cannot write the bootstrap list to /nowhere/x: "
                + "No such file or directory\n")
    }

    private func expectEnd(of arguments: [String], at signal: Int32) async throws {
        let output = FileManager.default.temporaryDirectory
            .appending(path: "simulator-\(UUID().uuidString).log")
        defer { try? FileManager.default.removeItem(at: output) }
        let process = try FleetProcess(
            "simulator", program: try Fleet.lab, arguments: arguments, log: output.path,
            input: "")
        // Its first line says that it serves.
        try await waitUntil("the simulator to serve") { process.output.contains("127.0.0.1:") }
        process.signal(signal)
        #expect(try await process.finish() == 0)
    }
}
