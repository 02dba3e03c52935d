// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
package import PushModel

/// The headers that a collector wants of each request, such as `Authorization`. They are secrets.
package struct CollectorHeaders: Sendable {
    package let lines: [(name: String, value: Secret)]

    /// Why the file cannot be used; never its content.
    package struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
    }

    package static let bytesMax = 16_384
    package static let linesMax = 16

    package static let none = CollectorHeaders(lines: [])

    private init(lines: [(name: String, value: Secret)]) { self.lines = lines }

    /// Reads a file with a header a line, `Name: value`. Empty lines, and lines that begin with
    /// `#`, are passed over.
    package init(file: String) throws(Problem) {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw Problem(description: "cannot be read")
        }
        guard data.count <= Self.bytesMax else {
            throw Problem(description: "is larger than \(Self.bytesMax) bytes")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw Problem(description: "is not UTF-8")
        }
        try self.init(text: text)
    }

    package init(text: String) throws(Problem) {
        var lines: [(name: String, value: Secret)] = []
        for (index, line) in text.split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        ).enumerated() {
            let line = line.trimmed
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            guard let colon = line.firstIndex(of: ":"),
                Self.isName(line[..<colon]), Self.isValue(line[line.index(after: colon)...])
            else { throw Problem(description: "has no header `Name: value` in line \(index + 1)") }
            let name = String(line[..<colon])
            guard !Self.reserved.contains(name.lowercased()) else {
                throw Problem(description: "sets \(name), which the worker sets itself")
            }
            lines.append((name, Secret(String(line[line.index(after: colon)...].trimmed))))
        }
        guard lines.count <= Self.linesMax else {
            throw Problem(description: "has more than \(Self.linesMax) headers")
        }
        self.init(lines: lines)
    }

    private static let reserved: Set = [
        "content-type", "content-length", "content-encoding", "host", "connection", "expect",
        "transfer-encoding",
    ]

    private static func isName(_ text: Substring) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                    || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x5F
            }
    }

    private static func isValue(_ text: Substring) -> Bool {
        !text.trimmed.isEmpty && text.utf8.allSatisfy { $0 == 0x09 || (0x20...0x7E).contains($0) }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return start[...last]
    }
}
