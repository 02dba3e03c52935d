// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// A signal that comes as soon as a program can remember it, while it still reads its command line and
/// its configuration.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `An early signal to a program` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    @Test(arguments: ["run", "registrar"], [SIGTERM, SIGINT])
    func `an early signal stops a worker or a registrar in order`(
        command: String, signal: Int32
    ) async throws {
        let process = try await start(command, try await configuration())
        process.signal(signal)
        #expect(try await process.finish() == 0, "\(process.output)")
        #expect(process.output.contains("stopped"))
    }

    @Test(arguments: ["run", "registrar"], [SIGTERM, SIGINT])
    func `an early signal does not keep a wrong configuration from being told`(
        command: String, signal: Int32
    ) async throws {
        let process = try await start(command, try await configuration(isWrong: true))
        process.signal(signal)
        #expect(try await process.finish() == 78, "\(process.output)")
    }

    @Test(arguments: [SIGHUP, SIGUSR1, SIGUSR2])
    func `an early signal that asks a worker for something else does not end it`(
        signal: Int32
    ) async throws {
        let process = try await start("run", try await configuration())
        process.signal(signal)
        try await waitUntil("the worker's start") { process.output.contains("starting") }
        process.signal(SIGTERM)
        #expect(try await process.finish() == 0, "\(process.output)")
    }

    @Test(arguments: [
        ("check", SIGTERM), ("check", SIGINT), ("check", SIGHUP), ("registrar", SIGHUP),
        ("registrar", SIGUSR1),
    ])
    func `an early signal ends a command that does not take it over`(
        command: String, signal: Int32
    ) async throws {
        // The program may have told of its configuration before this process has its turn.
        for _ in 0..<50 {
            let process = try await start(command, try await configuration(isWrong: true))
            process.signal(signal)
            let status = try await process.finish()
            if status == -signal { return }
            try #require(status == 78, "\(process.output)")
        }
        Issue.record("no signal of 50 came in time, or none ends it")
    }

    /// A program that has just begun to hold its signals.
    private func start(_ command: String, _ configuration: String) async throws -> FleetProcess {
        let process = try FleetProcess(
            command, program: try Fleet.program, arguments: [command, "--config", configuration],
            log: configuration + ".log", input: "")
        let patience = Patience()
        while !handlesSIGTERM(process.identifier), process.isRunning {
            try #require(!patience.isOver)
            usleep(500)
        }
        return process
    }

    /// By the mask of caught signals; see proc_pid_status(5).
    private func handlesSIGTERM(_ process: Int32) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
        let mask = line?.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
        return mask & 1 << UInt64(SIGTERM - 1) != 0
    }

    /// A file with the fleet's configuration.
    /// - Parameter isWrong: has it name so many apps that reading it takes a second, and fails.
    private func configuration(isWrong: Bool = false) async throws -> String {
        let path = fleet.directory.appending(path: "early-\(UUID()).yaml").path
        let made = try await fleet.run(
            [
                "registrar-key", "create", "--id", "early", "--app", TestApp.home, "--append",
                path + ".keys",
            ])
        #expect(made.status == 0, "\(made.output)")
        var text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        text += "registrar: {port: 0, auth: {serviceKeysFile: \(path).keys}}\n"
        if isWrong {
            let apps = (0..<100_000).map { "a\($0)" }.joined(separator: ", ")
            text += "intake: {recordBytesMax: [\(apps)]}\n"
        }
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }
}
