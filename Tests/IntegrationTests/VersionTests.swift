// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import Entrypoint

/// What an operator compares between two machines.
@Suite struct `The version of the program` {
    @Test func `the version shows a library's compiled one only where the loaded one differs`() {
        let same = Version.Library(name: "nghttp2", loaded: "1.52.0", compiled: "1.52.0")
        let other = Version.Library(name: "nghttp2", loaded: "1.52.0", compiled: "1.51.0")
        #expect(same.version == "1.52.0")
        #expect(other.version == "1.52.0 (compiled against 1.51.0)")
    }

    @Test func `the version has numbers for each library, loaded and compiled`() {
        for library in Version.libraries {
            #expect(library.loaded.wholeMatch(of: /\d+\.\d+\.\d+[^ ]*/) != nil, "\(library)")
            #expect(library.compiled.wholeMatch(of: /\d+\.\d+\.\d+[^ ]*/) != nil, "\(library)")
        }
    }

    @Test func `the version is one that the changelog has a section for`() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)
        #expect(page.contains("\n## [\(Version.number)]"))
    }
}
