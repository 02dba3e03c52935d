// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Synchronization
import Testing

@testable import LamplighterClientCore

@Suite struct `Bearer tokens` {
    @Test func `a token is remembered for its installation alone`() async throws {
        let asked = Mutex(0)
        let authorizer = BearerAuthorizer { _ in
            asked.withLock {
                $0 += 1
                return "token-\($0)"
            }
        }
        func header(_ installation: String) async throws -> String? {
            let address = try Address(
                environment: .production, app: "com.example.garage", installation: installation)
            let request = Request(method: "PUT", url: URL(string: "http://127.0.0.1/")!)
            return try await authorizer.headers(for: request, about: address, after: nil)[
                "Authorization"]
        }
        #expect(try await header("first") == "Bearer token-1")
        #expect(try await header("first") == "Bearer token-1")
        // The user has signed out: the installation has another name, and may have another user.
        #expect(try await header("second") == "Bearer token-2")
        #expect(try await header("second") == "Bearer token-2")
    }
}
