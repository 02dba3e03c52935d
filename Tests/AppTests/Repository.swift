// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// The files of the repository, for tests that compare pages and rules with them.
enum Repository {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .resolvingSymlinksInPath()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    static func has(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path)
    }

    /// The paths of the files under `places` (folders or files), relative to the root and sorted.
    static func files(in places: [String], where isWanted: (String) -> Bool) -> [String] {
        var paths: [String] = []
        for place in places {
            let url = root.appendingPathComponent(place)
            let found = FileManager.default.enumerator(atPath: url.path)
            guard let found, found.nextObject() != nil else {
                if has(place) { paths.append(place) }
                continue
            }
            for case let path as String in FileManager.default.enumerator(atPath: url.path)! {
                paths.append("\(place)/\(path)")
            }
        }
        return paths.filter(isWanted).sorted()
    }

    /// The names of the tests of each suite.
    ///
    /// In a file, a test belongs to the last suite named above it.
    static func tests() throws -> [String: Set<String>] {
        var tests: [String: Set<String>] = [:]
        let name = try NSRegularExpression(
            pattern: "(struct|class|extension|func) `([^`\n]+)`", options: [])
        for path in files(in: ["Tests"], where: { $0.hasSuffix(".swift") }) {
            var suite = ""
            let text = try self.text(path)
            for match in name.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
                guard let kind = Range(match.range(at: 1), in: text),
                    let words = Range(match.range(at: 2), in: text)
                else { continue }
                if text[kind] == "func" {
                    tests[suite, default: []].insert(String(text[words]))
                } else {
                    suite = String(text[words])
                }
            }
        }
        return tests
    }
}
