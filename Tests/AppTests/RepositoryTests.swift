// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

/// What a stranger finds first: pages that lead somewhere, commands that exist, pinned parts.
@Suite struct `The repository's pages and settings` {
    private static func pages() -> [String] {
        Repository.files(
            in: [
                "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "benchmarks",
            ]
        ) { $0.hasSuffix(".md") }
    }

    @Test func `every link within the repository leads to a file`() throws {
        var links = 0
        for page in Self.pages() {
            let folder = (page as NSString).deletingLastPathComponent
            for match in try Repository.text(page).matches(of: /\]\(([^)#\s]+)[^)]*\)/) {
                let target = String(match.1)
                guard !target.contains("://") else { continue }
                links += 1
                let path = (folder as NSString).appendingPathComponent(target)
                #expect(Repository.has(path), "\(page) links to \(target)")
            }
        }
        #expect(links >= 20)
    }

    @Test func `the index of the documentation has every page`() throws {
        let index = try Repository.text("docs/README.md")
        let pages = Repository.files(in: ["docs"]) { $0.hasSuffix(".md") && $0 != "docs/README.md" }
        #expect(pages.count >= 20)
        for page in pages {
            #expect(index.contains("](\(page.dropFirst("docs/".count)))"), "\(page) is not in it")
        }
    }

    @Test func `a long page begins with its contents`() throws {
        var pages = 0
        for page in Self.pages() {
            let text = try Repository.text(page)
            let parts = Self.headings(of: text)
            guard parts.count >= 3, text.split(whereSeparator: \.isWhitespace).count > 2000
            else { continue }
            pages += 1
            let start = try #require(text.range(of: "**Contents:** "), "\(page) has none")
            let end = try #require(text[start.upperBound...].range(of: "\n\n"))
            let links = text[start.upperBound..<end.lowerBound]
                .matches(of: /\[([^\]]+)\]\(#([^)]*)\)/)
            #expect(links.map { String($0.1) } == parts, "\(page)")
            for link in links {
                #expect(String(link.2) == Self.anchor(of: String(link.1)), "\(page)")
            }
        }
        #expect(pages >= 10)
    }

    private static func headings(of page: String) -> [String] {
        var isCode = false
        return page.split(separator: "\n").compactMap { line in
            if line.hasPrefix("```") { isCode.toggle() }
            return !isCode && line.hasPrefix("## ") ? String(line.dropFirst(3)) : nil
        }
    }

    /// As GitHub makes one of a heading.
    private static func anchor(of heading: String) -> String {
        String(
            heading.lowercased().compactMap { character in
                if character == " " { return "-" }
                let isKept = character.isLetter || character.isNumber || "-_".contains(character)
                return isKept ? character : nil
            })
    }

    @Test func `every make verb that a page names is in the Makefile`() throws {
        let verbs = Set(
            try Repository.text("Makefile").matches(of: /(?m)^([a-z][a-z-]*):/).map(\.1))
        var named: Set<Substring> = []
        for page in Self.pages() {
            for match in try Repository.text(page).matches(of: /(?m)(?:`|^)make ([a-z][a-z-]*)/) {
                named.insert(match.1)
                #expect(verbs.contains(match.1), "\(page) names make \(match.1)")
            }
        }
        #expect(named.count >= 10)
    }

    @Test func `the page names each test that runs only against a real broker`() throws {
        let page = try Repository.text("CONTRIBUTING.md")
        let start = try #require(page.range(of: "run only there:\n"))
        let end = try #require(page[start.upperBound...].range(of: "\n\nThese"))
        let named = Set(
            page[start.upperBound..<end.lowerBound].matches(of: /(?m)^- `(.+)`/).map(\.1))
        var marked: Set<Substring> = []
        let test = try Regex(
            #"enabled\(if: Fleet\.testBootstrap != nil\)[^\n]*\s+func `([^`]+)`"#,
            as: (Substring, Substring).self)
        for path in Repository.files(in: ["Tests/IntegrationTests"], where: { _ in true }) {
            marked.formUnion(try Repository.text(path).matches(of: test).map(\.output.1))
        }
        #expect(named == marked && marked.count >= 4)
    }

    @Test func `the glossary has at most 30 words, each once`() throws {
        let words = try Repository.text("docs/glossary.md").split(separator: "\n")
            .compactMap { $0.wholeMatch(of: /\| \*\*(.+?)\*\* \|.*/)?.1 }
        #expect((20...30).contains(words.count), "\(words.count) words")
        #expect(Set(words).count == words.count)
    }

    @Test func `the glossary's last column names types or targets that exist`() throws {
        let sources = Repository.files(in: ["Sources"]) { $0.hasSuffix(".swift") }
        var names = Set(sources.map { $0.split(separator: "/").dropLast().last.map(String.init) })
        let type = try NSRegularExpression(pattern: "(?m)^[a-z() ]*(?:struct|class|enum) (\\w+)")
        for path in sources {
            let text = try Repository.text(path)
            for match in type.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
                names.insert(Range(match.range(at: 1), in: text).map { String(text[$0]) })
            }
        }
        for line in try Repository.text("docs/glossary.md").split(separator: "\n")
        where line.hasPrefix("| **") {
            let cells = line.split(separator: "|")
            let places = try #require(cells.dropFirst(2).first).matches(of: /`(\w+)`/)
            #expect(!places.isEmpty, "\(line)")
            for place in places { #expect(names.contains(String(place.1)), "\(line)") }
        }
    }

    /// Whoever reads a suite's name in a list of failures finds its file, and the other way round.
    @Test func `a test file is named with words of one of its suites`() throws {
        func words(_ text: Substring) -> [String] {
            text.matches(of: /[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+|[0-9]+/).map {
                $0.0.lowercased()
            }
        }
        var files = 0
        for path in Repository.files(in: ["Tests"], where: { $0.hasSuffix("Tests.swift") }) {
            let text = try Repository.text(path)
            let suites = text.matches(of: /(?:struct|enum|class|extension) `([^`\n]+)`/).map {
                Set($0.1.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init))
            }
            guard text.contains("@Test") else { continue }
            files += 1
            // What follows a + tells the files of one suite apart.
            let name = (path as NSString).lastPathComponent.dropLast("Tests.swift".count)
            let own = words(name.prefix { $0 != "+" })
            #expect(
                suites.contains { suite in
                    own.allSatisfy { word in
                        let plurals = ["\(word)s", "\(word)es", "\(word.dropLast())ies"]
                        return suite.contains(word) || plurals.contains(where: suite.contains)
                    }
                }, "\(path)")
            #expect(own.allSatisfy { !["rule", "edge"].contains($0) }, "\(path)")
        }
        #expect(files >= 200)
    }

    @Test func `editors are told what the formatter is told`() throws {
        struct Format: Decodable {
            let lineLength: Int
            let indentation: [String: Int]
        }
        let format = try JSONDecoder().decode(
            Format.self, from: Data(try Repository.text(".swift-format").utf8))
        let settings = try Repository.text(".editorconfig")
        let common = try #require(settings.firstMatch(of: /\[\*\]\n([^\[]*)/)?.1)
        let swift = try #require(settings.firstMatch(of: /\[\*\.swift\]\n([^\[]*)/)?.1)
        #expect(swift.contains("max_line_length = \(format.lineLength)\n"))
        #expect(common.contains("indent_style = space\n"))
        #expect(common.contains("indent_size = \(try #require(format.indentation["spaces"]))\n"))
        #expect(!swift.contains("indent"))
    }

    @Test func `every Swift package has an exact version`() throws {
        let manifest = try Repository.text("Package.swift")
        let packages = manifest.matches(of: /\.package\(\s*url:[^)]*\)/)
        #expect(packages.count >= 4)
        for package in packages { #expect(package.0.contains("exact: \""), "\(package.0)") }
    }

    @Test func `every action of the workflows is named by its commit`() throws {
        let workflows = Repository.files(in: [".github/workflows"]) { $0.hasSuffix(".yml") }
        #expect(!workflows.isEmpty)
        for workflow in workflows {
            for match in try Repository.text(workflow).matches(of: /uses: *(.*)/) {
                #expect(match.1.contains(/@[0-9a-f]{40} # v\d/), "\(workflow): \(match.1)")
            }
        }
    }
}
