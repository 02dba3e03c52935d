// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

@testable internal import FleetKit

@Suite struct `An emptied file` {
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "emptied-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    @Test func `it is made, and written to from its start`() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "log").path
        for text in ["longer at first", "short"] {
            let file = try #require(FileHandle.emptied(path: path))
            try file.write(contentsOf: Data(text.utf8))
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        }
    }

    /// A device would be replaced by a file.
    @Test func `the file that was there stays the same one`() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let (path, link) = (folder.appending(path: "log").path, folder.appending(path: "link").path)
        try "before".write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.linkItem(atPath: path, toPath: link)
        let file = try #require(FileHandle.emptied(path: path))
        try file.write(contentsOf: Data("now".utf8))
        #expect(try String(contentsOfFile: link, encoding: .utf8) == "now")
    }

    @Test func `a folder that is missing is no reason to end`() {
        #expect(FileHandle.emptied(path: folder.appending(path: "none/log").path) == nil)
        try? FileManager.default.removeItem(at: folder)
    }
}
