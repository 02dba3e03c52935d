// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// What App Attest does on the device; `DCAppAttestService` in an app, a stand-in in tests.
public protocol AttestationService: Sendable {
    /// False on simulators and in most app extensions.
    var isSupported: Bool { get }
    func generateKey() async throws -> String
    func attestKey(_ keyID: String, clientDataHash: Data) async throws -> Data
    func generateAssertion(_ keyID: String, clientDataHash: Data) async throws -> Data
    func sha256(_ data: Data) -> Data
}

/// Lets an app register without a backend of its own: Apple attests that the genuine app on a genuine
/// device holds a key, the registrar gives a credential for it, and each request is signed with it.
public actor AppAttestAuthorizer: Authorizer {
    /// The device cannot attest; see ``AttestationService/isSupported``. What waits in the outbox is sent
    /// by the app when it runs next.
    public struct Unsupported: Error {}
    /// The registrar did not accept the attestation. With the problem `installationClaimed` the installation
    /// is another key's; ``RegistrationClient`` then goes on under a new identifier.
    public struct Refused: Error {
        public var problem: Problem
    }

    private struct Credential: Codable {
        var keyID: String
        var credential: String
        var expiresAt: String?
        /// The path for whose installation it is.
        var path: String
    }
    private struct Challenge: Codable {
        var challenge: String
    }
    private struct Attestation: Codable {
        var keyID: String
        var attestation: Data
        var challenge: String
    }
    private struct Granted: Codable {
        var credential: String
        var expiresAt: String?
    }

    private static let secretName = "attestation"
    /// A credential is renewed this many seconds before it expires, so that it does not do so on the way.
    private static let renewedBefore: TimeInterval = 300

    private let registrar: URL
    private let service: any AttestationService
    private let transport: any Transport
    private let secrets: any SecretStore
    private let now: @Sendable () -> Date
    /// Seconds by which the registrar's clock is ahead of the device's, as far as is known.
    private var clockError: TimeInterval = 0

    public init(
        registrar: URL, service: any AttestationService, secrets: any SecretStore,
        transport: any Transport = URLSessionTransport(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.registrar = registrar
        self.service = service
        self.secrets = secrets
        self.transport = transport
        self.now = now
    }

    public func headers(
        for request: Request, about address: Address, after refusal: CredentialRefusal?
    ) async throws -> [String: String] {
        guard service.isSupported else { throw Unsupported() }
        // The key is good, the device's clock is not: the registrar wants dates within five minutes.
        let isOutdated = refusal?.problem.name == "assertionOutdated"
        if isOutdated, let date = refusal?.date { clockError = date.timeIntervalSince(now()) }
        if refusal == nil || isOutdated, let credential = try remembered(address) {
            // The Keychain outlives the app, the key in the Secure Enclave does not.
            if let headers = try? await signed(request, with: credential) { return headers }
        }
        return try await signed(request, with: attest(address))
    }

    private func signed(
        _ request: Request, with credential: Credential
    ) async throws -> [String: String] {
        let date = now().addingTimeInterval(clockError).formatted(.iso8601)
        let statement = Self.statement(of: request, date: date, sha256: service.sha256)
        let assertion = try await service.generateAssertion(
            credential.keyID, clientDataHash: service.sha256(statement))
        return [
            "Authorization":
                "AppAttest credential=\"\(credential.credential)\", "
                + "assertion=\"\(assertion.base64EncodedString())\", date=\"\(date)\""
        ]
    }

    /// What an assertion signs: method, path with query, date and the body's hash, a line each.
    static func statement(of request: Request, date: String, sha256: (Data) -> Data) -> Data {
        let body = sha256(request.body ?? Data()).hexadecimal
        // As they are sent: with their escapes.
        let url = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
        let query = url?.percentEncodedQuery.map { "?\($0)" } ?? ""
        let target = (url?.percentEncodedPath ?? request.url.path) + query
        return Data("\(request.method)\n\(target)\n\(date)\n\(body)".utf8)
    }

    private func attest(_ address: Address) async throws -> Credential {
        var app = address
        app.tokenClass = nil
        app.handler = nil
        let installationPath = app.path

        let challenge: Challenge = try await post(
            "\(installationPath)/attest/challenge", body: Data("{}".utf8))
        let keyID = try await service.generateKey()
        // The challenge as it was sent, its characters in UTF-8.
        let attestation = try await service.attestKey(
            keyID, clientDataHash: service.sha256(Data(challenge.challenge.utf8)))
        let body = try JSONEncoder().encode(
            Attestation(keyID: keyID, attestation: attestation, challenge: challenge.challenge))
        let granted: Granted
        do {
            granted = try await post("\(installationPath)/attest", body: body)
        } catch {
            if let refusal = error as? Refused, refusal.problem.status ?? 0 < 500 { throw error }
            // The installation may be this key's already: another one would be refused.
            granted = try await post("\(installationPath)/attest", body: body)
        }
        let credential = Credential(
            keyID: keyID, credential: granted.credential, expiresAt: granted.expiresAt,
            path: installationPath)
        try secrets.write(Self.secretName, JSONEncoder().encode(credential))
        return credential
    }

    private func remembered(_ address: Address) throws -> Credential? {
        var installation = address
        installation.tokenClass = nil
        installation.handler = nil
        guard let data = try secrets.read(Self.secretName),
            let credential = try? JSONDecoder().decode(Credential.self, from: data),
            credential.path == installation.path
        else { return nil }
        let expiresAt = credential.expiresAt.flatMap(Self.date)
        let soon = now().addingTimeInterval(clockError + Self.renewedBefore)
        if let expiresAt, expiresAt < soon { return nil }
        return credential
    }

    /// RFC 3339, with a fraction of a second or without.
    static func date(_ text: String) -> Date? {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
            ?? (try? Date(text, strategy: .iso8601))
    }

    private func post<Answer: Decodable>(_ path: String, body: Data) async throws -> Answer {
        let base = registrar.absoluteString
        guard let url = URL(string: (base.hasSuffix("/") ? String(base.dropLast()) : base) + path)
        else {
            throw URLError(.badURL)
        }
        let response = try await transport.send(
            Request(
                method: "POST", url: url, headers: ["Content-Type": "application/json"], body: body)
        )
        guard response.status == 200 else {
            throw Refused(
                problem: (try? JSONDecoder().decode(Problem.self, from: response.body))
                    ?? Problem(status: response.status))
        }
        return try JSONDecoder().decode(Answer.self, from: response.body)
    }
}
