// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Adds credentials to a request.
public protocol Authorizer: Sendable {
    /// - Parameters:
    ///   - request: As it will be sent, without credentials.
    ///   - address: What it is about.
    ///   - renewing: The registrar has just refused a request with 401: a remembered credential must
    ///     not be used again.
    /// - Returns: Headers to add.
    /// - Throws: Whatever keeps the app from having a credential now; the request is sent later.
    func headers(
        for request: Request, about address: Address, renewing: Bool
    ) async throws -> [String: String]
}

/// A bearer token that the app's backend hands out to the app's user: a JWT that names the app, the
/// installation and the subjects that the user may see. A key of the registrar's itself has no place
/// in an app, from which anyone can read it.
public actor BearerAuthorizer: Authorizer {
    private let credential: @Sendable (_ renewing: Bool) async throws -> String
    private var remembered: String?

    /// - Parameter credential: Asks the app's backend; it is called once, and again after a 401.
    public init(_ credential: @escaping @Sendable (_ renewing: Bool) async throws -> String) {
        self.credential = credential
    }

    public func headers(
        for request: Request, about address: Address, renewing: Bool
    ) async throws -> [String: String] {
        if renewing { remembered = nil }
        if let remembered { return ["Authorization": "Bearer \(remembered)"] }
        let token = try await credential(renewing)
        remembered = token
        return ["Authorization": "Bearer \(token)"]
    }
}
