// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

/// Children that are killed while they write: what `put` has returned is there, and nothing is half
/// there. A kill leaves the system's caches alone, so that this says nothing about a power cut.
@Suite(.serialized) struct `An outbox whose writers are killed` {
    /// Beside the test bundle, where SwiftPM puts the products.
    static var program: URL? {
        var folders = Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() }
        folders.append(Bundle.main.bundleURL)
        return folders.map { $0.appendingPathComponent("OutboxWriter") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// A child that writes until it is killed, and the file that takes what it prints.
    struct Writer {
        let process = Process()
        let output: URL

        init(_ folder: TemporaryFolder, handler: String, run: Int) throws {
            output = folder.url.appendingPathComponent("\(handler)-\(run).txt")
            try Data().write(to: output)
            let executable: URL = try #require(program)
            process.executableURL = executable
            process.arguments = [folder.url.appendingPathComponent("outbox").path, handler]
            process.standardOutput = try FileHandle(forWritingTo: output)
            try process.run()
        }

        /// The sequences of what was put, all but a line that the kill has cut.
        func kill() throws -> [Int64] {
            #if canImport(Darwin)
                Darwin.kill(process.processIdentifier, SIGKILL)
            #else
                Glibc.kill(process.processIdentifier, SIGKILL)
            #endif
            process.waitUntilExit()
            let text = try String(contentsOf: output, encoding: .utf8)
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .compactMap { Int64($0) }
        }
    }

    @Test func `keeps what was put, whenever the kill comes`() async throws {
        let folder = try TemporaryFolder()
        var last: Int64 = 0
        for run in 0..<30 {
            let writer = try Writer(folder, handler: "A", run: run)
            try await Task.sleep(nanoseconds: .random(in: 5_000_000...120_000_000))
            let printed = try writer.kill()
            let outbox = Outbox(folder: folder.url.appendingPathComponent("outbox"))
            let pending = try outbox.pending(of: "6F1C")
            #expect(pending.corrupt.isEmpty)
            #expect(pending.snapshots.count <= 1)
            // A child that was killed before its first one leaves that of the run before.
            let newest = max(last, printed.last ?? 0)
            #expect((pending.snapshots.last?.sequence ?? 0) >= newest)
            #expect(printed == printed.sorted() && printed.allSatisfy { $0 > last })
            last = max(newest, pending.snapshots.last?.sequence ?? 0)
        }
        #expect(last > 0)
    }

    @Test func `gives two writers different sequences, and keeps both handlers`() async throws {
        let folder = try TemporaryFolder()
        var printed: [Int64] = []
        for run in 0..<10 {
            let writers = [
                try Writer(folder, handler: "A", run: run),
                try Writer(folder, handler: "B", run: run),
            ]
            try await Task.sleep(nanoseconds: .random(in: 50_000_000...200_000_000))
            for writer in writers { printed += try writer.kill() }
        }
        #expect(printed.count > 20)
        #expect(Set(printed).count == printed.count)
        let outbox = Outbox(folder: folder.url.appendingPathComponent("outbox"))
        let pending = try outbox.pending(of: "6F1C")
        #expect(pending.corrupt.isEmpty)
        #expect((pending.snapshots.map(\.sequence).max() ?? 0) >= (printed.max() ?? 0))
    }
}
