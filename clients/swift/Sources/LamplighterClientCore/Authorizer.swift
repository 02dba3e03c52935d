// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Why the registrar has just refused a request's credentials.
public struct CredentialRefusal: Hashable, Sendable {
    public var problem: Problem
    /// The registrar's clock, if the answer says.
    public var date: Date?

    public init(_ problem: Problem, date: Date? = nil) {
        self.problem = problem
        self.date = date
    }
}

/// Adds credentials to a request.
public protocol Authorizer: Sendable {
    /// - Parameters:
    ///   - request: As it will be sent, without credentials.
    ///   - address: What it is about.
    ///   - refusal: The registrar has just answered 401 to this request: what was refused must not be
    ///     used again.
    /// - Returns: Headers to add.
    /// - Throws: Whatever keeps the app from having a credential now; the request is sent later.
    func headers(
        for request: Request, about address: Address, after refusal: CredentialRefusal?
    ) async throws -> [String: String]
}

/// A bearer token that the app's backend hands out to the app's user: a JWT that names the app, the
/// installation and the subjects that the user may see. A key of the registrar's itself has no place
/// in an app, from which anyone can read it.
public actor BearerAuthorizer: Authorizer {
    private let credential: @Sendable (_ renewing: Bool) async throws -> String
    private var remembered: (installation: String, token: String)?

    /// - Parameter credential: Asks the app's backend; it is called once, and again after a 401
    ///   and for another installation, which may be another user's.
    public init(_ credential: @escaping @Sendable (_ renewing: Bool) async throws -> String) {
        self.credential = credential
    }

    public func headers(
        for request: Request, about address: Address, after refusal: CredentialRefusal?
    ) async throws -> [String: String] {
        if refusal == nil, let remembered, remembered.installation == address.installation {
            return ["Authorization": "Bearer \(remembered.token)"]
        }
        remembered = nil
        let token = try await credential(refusal != nil)
        remembered = (address.installation, token)
        return ["Authorization": "Bearer \(token)"]
    }
}
