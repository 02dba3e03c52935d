// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing

/// docs/delivery.md names a test for each promise.
@Suite struct `The promises of docs/delivery.md` {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every sentence that names a test.
    private static func tests() throws -> Set<String> {
        let folder = root.appendingPathComponent("Tests").resolvingSymlinksInPath()
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var names: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: /func `([^`]+)`/) { names.insert(String(match.1)) }
        }
        return names
    }

    @Test func `each have tests that exist`() throws {
        let page = try String(
            contentsOf: Self.root.appendingPathComponent("docs/delivery.md"), encoding: .utf8)
        let known = try Self.tests()
        var promises = 0
        var named = 0
        for line in page.split(separator: "\n") {
            if line.firstMatch(of: #/^[0-9]+\. /#) != nil { promises += 1 }
            guard let match = line.firstMatch(of: #/^ +- `([^`]+)`$/#) else { continue }
            named += 1
            #expect(known.contains(String(match.1)), "no test is called so")
        }
        #expect(promises >= 27 && named >= promises)
    }
}
