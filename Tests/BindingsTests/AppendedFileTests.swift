// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Testing

@Suite struct `An appended file` {
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "lamplighter-\(UUID().uuidString)")
    private var path: String { folder.appending(path: "log").path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func end() { try? FileManager.default.removeItem(at: folder) }

    private func content(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }

    private func append(_ text: String, to file: AppendedFile) throws {
        try Array(text.utf8).withUnsafeBytes { try file.append($0) }
    }

    @Test func `a file that grows is its owner's alone, also if it was everybody's`() throws {
        defer { end() }
        try "old\n".write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        let file = try AppendedFile(path: path, bytesMax: 100)
        try append("new\n", to: file)
        #expect(content(path) == "old\nnew\n")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func `a file that grows is bounded: it and the one before it`() throws {
        defer { end() }
        let file = try AppendedFile(path: path, bytesMax: 20)
        for number in 0..<9 { try append("line \(number)\n", to: file) }
        #expect(content(path) == "line 8\n")
        #expect(content(path + ".1") == "line 6\nline 7\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)
        // A piece that is too large has a file of its own.
        let large = String(repeating: "a", count: 50) + "\n"
        try append(large, to: file)
        #expect(content(path) == large && content(path + ".1") == "line 8\n")
    }

    @Test(arguments: [("one\ntwo\nthr", "one\ntwo\n"), ("thr", ""), ("", ""), ("one\n", "one\n")])
    func `a file that grows loses the half of a line that a crash has left`(
        before: String, kept: String
    ) throws {
        defer { end() }
        try before.write(toFile: path, atomically: false, encoding: .utf8)
        let file = try AppendedFile(path: path, bytesMax: 100)
        try append("next\n", to: file)
        #expect(content(path) == kept + "next\n")
    }

    @Test func `a file that grows has one writer, and is no link`() throws {
        defer { end() }
        let first = try AppendedFile(path: path, bytesMax: 100)
        let error = #expect(throws: SystemError.self) {
            try AppendedFile(path: path, bytesMax: 100)
        }
        #expect(error?.isLockHeld == true)
        try append("a\n", to: first)
        let link = folder.appending(path: "link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(throws: SystemError.self) { try AppendedFile(path: link, bytesMax: 100) }
    }

    @Test func `a file that grows takes no other file for its own, and leaves it as it is`() throws
    {
        defer { end() }
        let other = String(repeating: "x", count: 100_000)
        try other.write(toFile: path, atomically: false, encoding: .utf8)
        #expect(throws: SystemError.self) { try AppendedFile(path: path, bytesMax: 100) }
        #expect(content(path) == other)
        // A long line that was torn has one before it.
        try ("one\n" + other).write(toFile: path, atomically: false, encoding: .utf8)
        #expect(throws: SystemError.self) { try AppendedFile(path: path, bytesMax: 100) }
        try ("one\n" + other.prefix(60_000)).write(
            toFile: path, atomically: false, encoding: .utf8)
        let file = try AppendedFile(path: path, bytesMax: 100)
        try append("two\n", to: file)
        #expect(content(path) == "one\ntwo\n")
    }

    @Test func `a file that grows goes on after its next one could not be opened`() throws {
        defer { end() }
        let file = try AppendedFile(path: path, bytesMax: 10)
        try append("line 1\n", to: file)
        // As with no file descriptor left: the name has gone, and nothing has come in its place.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try append("line 2\n", to: file)
        #expect(content(path) == "line 2\n" && content(path + ".1") == "line 1\n")
    }
}
