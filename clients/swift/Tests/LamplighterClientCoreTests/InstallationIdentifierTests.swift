// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

@Suite struct `The installation's identifier` {
    @Test func `is the same for all processes, also when they ask at the same time`() async throws {
        let folder = try TemporaryFolder()
        let identifiers = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<8 {
                group.addTask { try FileSecretStore(folder: folder.url).installation() }
            }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(identifiers.count == 1)
        #expect(Address.isName(try #require(identifiers.first)))
    }

    @Test func `is made anew when it is unreadable`() throws {
        let folder = try TemporaryFolder()
        let secrets = try FileSecretStore(folder: folder.url)
        try secrets.write("installation", Data("a/b".utf8))
        let identifier = try secrets.installation()
        #expect(Address.isName(identifier))
        #expect(try secrets.installation() == identifier)
    }
}
