// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Foundation
internal import LinuxIO
internal import Testing

@Suite struct `A file that is replaced` {
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "lamplighter-\(UUID().uuidString)")
    private var path: String { folder.appending(path: "file").path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func write(_ text: String, to file: ReplacedFile) throws {
        try Array(text.utf8).lend { bytes throws(SystemError) in try file.write(bytes) }
    }

    private func content() -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    private func end() { try? FileManager.default.removeItem(at: folder) }

    @Test(arguments: [false, true])
    func `a file is seen when it is complete, by its owner alone`(isSynchronised: Bool) throws {
        defer { end() }
        for text in ["first", "second and longer", "3rd"] {
            let before = content()
            let file = try ReplacedFile(path: path)
            try write(text, to: file)
            #expect(content() == before)
            try file.replace(synchronising: isSynchronised)
            #expect(content() == text)
        }
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
    }

    @Test func `a file that was not completed leaves nothing`() throws {
        defer { end() }
        do {
            let file = try ReplacedFile(path: path)
            try write("half", to: file)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    }

    @Test func `what a killed process has left is overwritten, whatever its length and mode`()
        throws
    {
        defer { end() }
        let left = folder.appending(path: "file.new").path
        try String(repeating: "x", count: 100).write(
            toFile: left, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: left)
        let file = try ReplacedFile(path: path)
        try write("short", to: file)
        try file.replace(synchronising: false)
        #expect(content() == "short")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func `one process writes a file at a time, and no link is followed`() throws {
        defer { end() }
        do {
            let file = try ReplacedFile(path: path)
            let refusal = #expect(throws: SystemError.self) { _ = try ReplacedFile(path: path) }
            #expect(refusal?.call == "flock")
            try write("mine", to: file)
            try file.replace(synchronising: false)
            // In place, it is nobody's obstacle.
            _ = try ReplacedFile(path: path)
        }
        #expect(content() == "mine")
        let link = folder.appending(path: "file.new").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(throws: SystemError.self) { _ = try ReplacedFile(path: path) }
        #expect(content() == "mine")
    }
}

@Suite struct `A private file` {
    private let folder = FileManager.default.temporaryDirectory
        .appending(path: "lamplighter-\(UUID().uuidString)")
    private var path: String { folder.appending(path: "file").path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try "0123456789".write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    private func end() { try? FileManager.default.removeItem(at: folder) }

    @Test func `a private file is read at any place, and not beyond its end`() throws {
        defer { end() }
        let file = try #require(try PrivateFile.open(path: path))
        #expect(file.bytes == 10)
        var bytes = [UInt8](repeating: 0, count: 4)
        try bytes.lendMutable { bytes throws(SystemError) in
            try file.read(at: 3, into: bytes)
        }
        #expect(String(decoding: bytes, as: UTF8.self) == "3456")
        #expect(throws: SystemError.self) {
            try bytes.lendMutable { bytes throws(SystemError) in
                try file.read(at: 7, into: bytes)
            }
        }
    }

    @Test func `no file is no error`() throws {
        defer { end() }
        #expect(try PrivateFile.open(path: path + "-none") == nil)
    }

    @Test(arguments: [0o620, 0o602, 0o666])
    func `a file that others may write is refused`(mode: Int) throws {
        defer { end() }
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let refusal = #expect(throws: PrivateFile.Problem.self) {
            _ = try PrivateFile.open(path: path)
        }
        #expect(refusal?.description == "others than this user may write it")
    }

    @Test func `a folder, a pipe and a link are refused at once`() throws {
        defer { end() }
        #expect(throws: PrivateFile.Problem.self) { _ = try PrivateFile.open(path: folder.path) }
        let pipe = folder.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(throws: PrivateFile.Problem.self) { _ = try PrivateFile.open(path: pipe) }
        let link = folder.appending(path: "link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        #expect(throws: PrivateFile.Problem.self) { _ = try PrivateFile.open(path: link) }
    }
}
