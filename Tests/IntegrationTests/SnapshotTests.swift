// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// A worker that begins with the index that another has left, on a Kafka of its own.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `A snapshot of the index on disk` {
    private let fleet: Fleet
    private let folder: URL
    private var file: URL { folder.appending(path: "lamplighter-index") }

    init() throws {
        fleet = try #require(Fleet.current)
        folder = fleet.directory.appending(path: "index-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private static let loaded = "the index was loaded"
    private static let written = "the index was written"
    private static let thrownAway = "the snapshot of the index is thrown away"

    /// Starts a worker, or another program, with the folder.
    private func start(_ arguments: [String] = ["run"]) throws -> FleetProcess {
        try FleetProcess(
            arguments.joined(separator: "-"), program: Fleet.program,
            arguments: arguments + ["--config", fleet.configurationFile.path],
            variables: [
                "LAMPLIGHTER_INDEX_SNAPSHOTDIRECTORY": folder.path,
                "LAMPLIGHTER_INDEX_SNAPSHOTEVERY": "10s",
            ],
            log: fleet.directory.appending(path: "\(UUID().uuidString).log").path)
    }

    /// Runs a worker until it has its index, then stops it.
    private func runWorker() async throws -> String {
        let worker = try start()
        try await eventually("the index", worker) {
            worker.output.contains("the index is complete")
        }
        return try await stop(worker)
    }

    private func eventually(
        _ what: String, _ process: FleetProcess, _ condition: () throws -> Bool
    ) async throws {
        try await waitUntil(what) {
            guard process.isRunning else { throw Timeout(description: process.excerpt) }
            return try condition()
        }
    }

    private func stop(_ process: FleetProcess) async throws -> String {
        process.signal(SIGTERM)
        let status = try await process.finish()
        #expect(status == 0, "\(process.excerpt)")
        return process.output
    }

    private var mode: Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
        return attributes?[.posixPermissions] as? Int
    }

    @Test func `a worker begins with what the one before has left, damaged files apart`()
        async throws
    {
        _ = try Traffic(fleet, subjects: 50, tokensEach: 3)
        let first = try await runWorker()
        #expect(first.contains(Self.written) && !first.contains(Self.loaded))
        #expect(mode == 0o600)
        let content = try Data(contentsOf: file)

        let second = try await runWorker()
        #expect(second.contains(Self.loaded) && !second.contains(Self.thrownAway))
        #expect(second.contains("tokens=150"))
        // Nothing was registered since, so it was not written again.
        #expect(!second.contains(Self.written))

        var damaged = content
        damaged[damaged.count / 2] ^= 1
        try damaged.write(to: file)
        let third = try await runWorker()
        #expect(
            third.contains(Self.thrownAway) && third.contains("it is damaged in its mebibyte 1"))
        #expect(third.contains("tokens=150") && third.contains(Self.written))

        try content.write(to: file)
        chmod(file.path, 0o666)
        let fourth = try await runWorker()
        #expect(fourth.contains(Self.thrownAway) && fourth.contains("others than this user"))
    }

    @Test func `a worker that begins with a snapshot sends what everybody is owed`() async throws {
        let traffic = try Traffic(fleet, subjects: 50, tokensEach: 3)
        _ = try await runWorker()
        let worker = try start()
        try await traffic.begin()
        try await traffic.emit(200)
        _ = try await traffic.delivered()
        let said = try await stop(worker)
        #expect(said.contains(Self.loaded))
    }

    @Test func `a keeper writes the index for workers, and again when something has changed`()
        async throws
    {
        _ = try Traffic(fleet, subjects: 50, tokensEach: 3)
        let keeper = try start(["index", "keep"])
        try await eventually("the file", keeper) { mode == 0o600 }
        let worker = try await runWorker()
        #expect(worker.contains(Self.loaded))
        let said = try await stop(keeper)
        #expect(said.components(separatedBy: Self.written).count == 2)
        // It begins with its own file.
        let second = try start(["index", "keep"])
        try await eventually("the file", second) { second.output.contains(Self.loaded) }
        #expect(try await !stop(second).contains(Self.written))
    }
}
