// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Synchronization
import Testing

@testable import LamplighterClientCore

/// Keys that are names, and a hash that shows its input.
final class ModelAttestation: AttestationService {
    private let keys = Mutex<[String]>([])
    let isSupported: Bool

    init(isSupported: Bool = true) { self.isSupported = isSupported }

    var keyCount: Int { keys.withLock { $0.count } }

    func loseKeys() { keys.withLock { $0 = $0.map { _ in "lost" } } }

    func generateKey() async throws -> String {
        keys.withLock { keys in
            keys.append("key-\(keys.count)")
            return keys.last!
        }
    }

    func attestKey(_ keyID: String, clientDataHash: Data) async throws -> Data {
        Data("attestation of \(keyID) over ".utf8) + clientDataHash
    }

    func generateAssertion(_ keyID: String, clientDataHash: Data) async throws -> Data {
        guard keys.withLock({ $0.contains(keyID) }) else { throw NoNetwork() }
        return Data("assertion of \(keyID) over ".utf8) + clientDataHash
    }

    func sha256(_ data: Data) -> Data { Data("sha256(".utf8) + data + Data(")".utf8) }
}

@Suite struct `App Attest` {
    let folder: TemporaryFolder
    let clock = VirtualClock()
    let service = ModelAttestation()
    let transport = ScriptedTransport { request, _ in
        request.url.path.hasSuffix("challenge")
            ? Response(
                status: 200,
                body: Data(#"{"challenge":"Y2hhbGxlbmdl","expiresAt":"2026-05-28T20:30:00Z"}"#.utf8)
            )
            : Response(
                status: 200,
                body: Data(#"{"credential":"CREDENTIAL","expiresAt":"2026-06-28T20:30:00Z"}"#.utf8))
    }

    init() throws { folder = try TemporaryFolder() }

    func authorizer(_ service: ModelAttestation? = nil) throws -> AppAttestAuthorizer {
        AppAttestAuthorizer(
            registrar: URL(string: "https://push.example.com/")!, service: service ?? self.service,
            secrets: try FileSecretStore(folder: folder.url), transport: transport,
            now: { [clock] in clock.now })
    }

    func address(_ installation: String = "6F1C") throws -> Address {
        try Address(
            environment: .production, app: "com.example.Garage", installation: installation,
            tokenClass: .widgets, handler: "default")
    }

    let refused = CredentialRefusal(Problem(status: 401))
    let request = Request(
        method: "PUT", url: URL(string: "https://push.example.com/v1/x")!, body: Data("body".utf8))

    @Test func `attests a key once and signs each request with it`() async throws {
        let authorizer = try authorizer()
        let headers = try await authorizer.headers(
            for: request, about: address(), after: nil)
        let hash = Data("sha256(body)".utf8).hexadecimal
        let assertion = Data(
            "assertion of key-0 over sha256(PUT\n/v1/x\n2026-05-28T20:26:40Z\n\(hash))".utf8)
        #expect(
            headers == [
                "Authorization": "AppAttest credential=\"CREDENTIAL\", assertion=\""
                    + assertion.base64EncodedString() + "\", date=\"2026-05-28T20:26:40Z\""
            ])
        #expect(
            transport.requests.map(\.url.path) == [
                "/v1/apps/com.example.Garage/environments/production/installations/6F1C/attest/challenge",
                "/v1/apps/com.example.Garage/environments/production/installations/6F1C/attest",
            ])
        let body = try #require(transport.requests[1].body)
        let sent = try #require(try JSONSerialization.jsonObject(with: body) as? [String: String])
        let attestation = "attestation of key-0 over sha256(Y2hhbGxlbmdl)"
        #expect(
            sent == [
                "keyID": "key-0", "challenge": "Y2hhbGxlbmdl",
                "attestation": Data(attestation.utf8).base64EncodedString(),
            ])
        _ = try await authorizer.headers(for: request, about: address(), after: nil)
        #expect(service.keyCount == 1)
    }

    @Test func `signs the path as it is sent, with its query`() throws {
        let url = try #require(URL(string: "https://push.example.com/v1/%41?belowSequence=3"))
        let statement = AppAttestAuthorizer.statement(
            of: Request(method: "DELETE", url: url), date: "DATE", sha256: service.sha256)
        let hash = Data("sha256()".utf8).hexadecimal
        #expect(
            String(decoding: statement, as: UTF8.self)
                == "DELETE\n/v1/%41?belowSequence=3\nDATE\n\(hash)")
    }

    @Test func `the next process goes on with the same key`() async throws {
        _ = try await authorizer().headers(for: request, about: address(), after: nil)
        _ = try await authorizer().headers(for: request, about: address(), after: nil)
        #expect(service.keyCount == 1)
    }

    @Test func `attests anew when asked to, when it expires, and for another installation`()
        async throws
    {
        let authorizer = try authorizer()
        _ = try await authorizer.headers(for: request, about: address(), after: nil)
        _ = try await authorizer.headers(for: request, about: address(), after: refused)
        #expect(service.keyCount == 2)
        _ = try await authorizer.headers(for: request, about: address("7A"), after: nil)
        #expect(service.keyCount == 3)
        clock.advance(by: 31 * 86_400)
        _ = try await authorizer.headers(for: request, about: address("7A"), after: nil)
        #expect(service.keyCount == 4)
    }

    @Test func `attests anew when a reinstallation has lost the key`() async throws {
        _ = try await authorizer().headers(for: request, about: address(), after: nil)
        service.loseKeys()
        _ = try await authorizer().headers(for: request, about: address(), after: nil)
        #expect(service.keyCount == 2)
    }

    @Test func `an answer that was lost is asked for again with the same key`() async throws {
        let transport = ScriptedTransport { request, before in
            if request.url.path.hasSuffix("challenge") {
                return Response(status: 200, body: Data(#"{"challenge":"Y2hhbGxlbmdl"}"#.utf8))
            }
            if before == 1 { throw NoNetwork() }
            return Response(status: 200, body: Data(#"{"credential":"CREDENTIAL"}"#.utf8))
        }
        let authorizer = AppAttestAuthorizer(
            registrar: URL(string: "https://push.example.com/")!, service: service,
            secrets: try FileSecretStore(folder: folder.url), transport: transport,
            now: { [clock] in clock.now })
        _ = try await authorizer.headers(for: request, about: address(), after: nil)
        #expect(service.keyCount == 1 && transport.requests.count == 3)
        #expect(transport.requests[1].body == transport.requests[2].body)
    }

    @Test func `an installation that is another key's is given up for a new one`() async throws {
        // The registrar knows the Keychain's identifier by the key of before a reinstallation.
        let secrets = try FileSecretStore(folder: folder.url.appendingPathComponent("secrets"))
        let old = try secrets.installation()
        let transport = ScriptedTransport { request, _ in
            let path = request.url.path
            if path.hasSuffix("challenge") {
                return Response(status: 200, body: Data(#"{"challenge":"Y2hhbGxlbmdl"}"#.utf8))
            }
            if path.hasSuffix("attest") {
                return path.contains(old)
                    ? .problem(403, "installationClaimed")
                    : Response(status: 200, body: Data(#"{"credential":"CREDENTIAL"}"#.utf8))
            }
            return .stored
        }
        let registrar = URL(string: "https://push.example.com")!
        let client = RegistrationClient(
            .init(
                registrar: registrar, app: "com.example.Garage", environment: .production,
                folder: folder.url.appendingPathComponent("outbox")),
            secrets: secrets,
            authorizer: AppAttestAuthorizer(
                registrar: registrar, service: service, secrets: secrets, transport: transport,
                now: { [clock] in clock.now }),
            transport: transport, environment: clock.environment)
        try client.register(.controls, handler: "A", targets: [.door(1)])
        try client.register(.widgets, targets: [.door(2)])
        #expect(await client.send(patience: 1000))
        let new = try client.installation()
        #expect(new != old)
        let puts = transport.requests.filter { $0.method == "PUT" }.map(\.url.path)
        #expect(puts.count == 2 && puts.allSatisfy { $0.contains("/installations/\(new)/") })
    }

    @Test func `a device with a wrong clock signs with the registrar's`() async throws {
        let authorizer = try authorizer()
        _ = try await authorizer.headers(for: request, about: address(), after: nil)
        var problem = Problem(status: 401)
        problem.type = "/problems/assertionOutdated"
        let refusal = CredentialRefusal(problem, date: clock.now.addingTimeInterval(3600))
        for refusal in [refusal, nil] {
            let headers = try await authorizer.headers(
                for: request, about: address(), after: refusal)
            #expect(headers["Authorization"]?.hasSuffix("date=\"2026-05-28T21:26:40Z\"") == true)
        }
        #expect(service.keyCount == 1)
    }

    @Test func `where the device cannot, what is registered waits`() async throws {
        let authorizer = try authorizer(ModelAttestation(isSupported: false))
        await #expect(throws: AppAttestAuthorizer.Unsupported.self) {
            try await authorizer.headers(for: request, about: address(), after: nil)
        }
    }
}
