// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials

/// A file that the registrar is configured with, read whole. It is compared with what was read
/// before by its bytes: a volume of Kubernetes changes a link, and an editor may keep size and time.
struct AccessFile: Sendable {
    let path: String
    let bytesMax: Int

    init(_ path: String, bytesMax: Int) {
        self.path = path
        self.bytesMax = bytesMax
    }

    /// - Throws: why the file cannot be used.
    func read() throws(FileFault) -> [UInt8] {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
            throw FileFault("cannot be read: check that it exists, and its permissions")
        }
        guard data.count <= bytesMax else { throw FileFault("has more than \(bytesMax) bytes") }
        return Array(data)
    }

    /// The text's lines that say something, with their numbers: without comments, which begin with
    /// `#`, and without spaces around.
    static func lines(of bytes: [UInt8]) throws(FileFault) -> [(number: Int, text: Substring)] {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw FileFault("is not UTF-8")
        }
        var lines: [(number: Int, text: Substring)] = []
        let all = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in all.enumerated() {
            let said = line.prefix { $0 != "#" }.drop(while: \.isWhitespace)
            let end = said.lastIndex { !$0.isWhitespace }
            if let end { lines.append((index + 1, said[...end])) }
        }
        return lines
    }
}

/// What is wrong with a file: the rest of a sentence that begins with its name. It never quotes
/// what the file holds.
struct FileFault: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
