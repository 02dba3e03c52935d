// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

@testable internal import Configuration

/// One vocabulary, the field's: words of our own that a reader cannot look up do not come back.
@Suite struct `The vocabulary` {
    struct Hit {
        let path: String
        /// From 1; 0 is the path itself.
        let line: Int
        let text: String
    }

    @Test(arguments: RetiredWord.all)
    func `the repository has no retired word`(_ word: RetiredWord) throws {
        let hits = try Self.hits(of: word)
        let shown = hits.prefix(20).map { "\($0.path):\($0.line): \($0.text)" }
        #expect(
            hits.isEmpty,
            """
            '\(word.word)' is retired, write \(word.instead); \(hits.count) hits:
            \(shown.joined(separator: "\n"))
            """)
    }

    @Test(arguments: RetiredWord.all)
    func `the ban finds a retired word and leaves legitimate uses alone`(_ word: RetiredWord) throws
    {
        #expect(try !Self.hits(of: word, in: word.example, path: "").isEmpty)
        #expect(try Self.hits(of: word, in: word.legitimate, path: "").isEmpty)
    }

    /// `VOCABULARY=1 .build/debug/lamplighterPackageTests.xctest --testing-library swift-testing --filter 'lists what is left'` prints every hit, and
    /// how many there are of each word in each folder.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["VOCABULARY"] != nil))
    func `the ban lists what is left`() throws {
        for word in RetiredWord.all {
            let hits = try Self.hits(of: word)
            var counts: [String: Int] = [:]
            for hit in hits {
                print("\(word.word)\t\(hit.path):\(hit.line)\t\(hit.text)")
                let folder = hit.path.split(separator: "/").dropLast().prefix(2)
                counts[folder.isEmpty ? hit.path : folder.joined(separator: "/"), default: 0] += 1
            }
            print("= \(word.word): \(hits.count)")
            for (folder, count) in counts.sorted(by: { $0.key < $1.key }) {
                print("=   \(folder) \(count)")
            }
        }
    }

    private static let places = [
        "Sources", "Tests", "docs", "scripts", "deploy", "benchmarks", "README.md",
        "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "Package.swift", "Makefile",
    ]
    private static let types: Set = [
        "swift", "md", "toml", "patch", "c", "h", "cpp", "py", "sh", "yaml", "json", "txt", "",
    ]
    /// The list itself, and inputs that no person writes.
    private static let exempt = [
        "Tests/AppTests/RetiredWords.swift", "Tests/AppTests/VocabularyTests.swift",
        "Tests/FuzzTests/Corpus",
        // Former names, which users must find there.
        "CHANGELOG.md",
    ]

    static func hits(of word: RetiredWord) throws -> [Hit] {
        let isFree = { (path: String) in
            (exempt + word.allowedIn).contains { path.hasPrefix($0) }
        }
        let paths = Repository.files(in: places) { path in
            !isFree(path) && types.contains((path as NSString).pathExtension)
        }
        var hits: [Hit] = []
        for path in paths {
            guard let text = try? Repository.text(path) else { continue }  // A folder.
            hits += try Self.hits(of: word, in: path, path: path).map {
                Hit(path: path, line: 0, text: $0.text)
            }
            hits += try Self.hits(of: word, in: text, path: path)
        }
        return hits
    }

    static func hits(of word: RetiredWord, in text: String, path: String) throws -> [Hit] {
        let whole = text as NSString
        let all = NSRange(location: 0, length: whole.length)
        let found = try NSRegularExpression(pattern: word.pattern).matches(in: text, range: all)
        guard !found.isEmpty else { return [] }
        let allowed = try word.allowed.flatMap {
            try NSRegularExpression(pattern: $0).matches(in: text, range: all).map(\.range)
        }
        var hits: [Hit] = []
        var line = 1
        var counted = 0
        for match in found.map(\.range) {
            let between = NSRange(location: counted, length: match.location - counted)
            line += whole.substring(with: between).utf8.count { $0 == UInt8(ascii: "\n") }
            counted = match.location
            guard
                !allowed.contains(where: { NSIntersectionRange($0, match).length == match.length })
            else { continue }
            let excerpt = whole.substring(with: whole.lineRange(for: match))
            hits.append(
                Hit(
                    path: path, line: line,
                    text: excerpt.trimmingCharacters(in: .whitespacesAndNewlines)))
        }
        return hits
    }
}
