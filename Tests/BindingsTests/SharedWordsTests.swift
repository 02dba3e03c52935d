// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import Testing

@Suite struct `Words in a shared file` {
    private static func file() -> String {
        FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)").path
    }

    @Test func `shared words are there for the next owner`() throws {
        let path = Self.file()
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            let words = try SharedWords(path: path)
            for index in 0..<SharedWords.words { #expect(words[index] == 0) }
            #expect(words.text == "")
            words[0] = 7
            words[SharedWords.words - 1] = .max
            words.rewrite(text: "a longer text")
            words.rewrite(text: "text")
        }
        let words = try SharedWords(path: path)
        #expect(words[0] == 7 && words[1] == 0 && words[SharedWords.words - 1] == .max)
        #expect(words.text == "text")
    }

    @Test func `shared words belong to one owner at a time`() throws {
        let path = Self.file()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let words = try SharedWords(path: path)
        let refusal = #expect(throws: SystemError.self) { _ = try SharedWords(path: path) }
        #expect(refusal?.call == "flock")
        words[1] = 1
    }

    @Test func `shared words take a text of any length`() throws {
        let path = Self.file()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let words = try SharedWords(path: path)
        words.rewrite(text: String(repeating: "x", count: SharedWords.bytes))
        #expect(words.text.utf8.count == SharedWords.textBytesMax)
        #expect(try Data(contentsOf: URL(filePath: path)).count == SharedWords.bytes)
    }

    @Test func `shared words are their owner's alone, and follow no link that was put there`()
        throws
    {
        let path = Self.file()
        let link = Self.file()
        defer { for path in [path, link] { try? FileManager.default.removeItem(atPath: path) } }
        _ = try SharedWords(path: path)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        let refusal = #expect(throws: SystemError.self) { _ = try SharedWords(path: link) }
        #expect(refusal?.call == "open")
    }

    @Test func `shared words need a folder that is there`() {
        let refusal = #expect(throws: SystemError.self) {
            _ = try SharedWords(path: Self.file() + "/words")
        }
        #expect(refusal?.call == "open")
    }
}

@Suite struct `SHA-256` {
    /// FIPS 180-4's own examples.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func `SHA-256 is the standard's`(message: String, digest: String) {
        let bytes = SHA256Digest.of(Array(message.utf8))
        #expect(bytes.map { String(format: "%02x", $0) }.joined() == digest)
        let prefix = Array(message.utf8).withUnsafeBytes { SHA256Digest.prefix(of: $0) }
        #expect(String(format: "%016lx", prefix) == String(digest.prefix(16)))
    }
}
