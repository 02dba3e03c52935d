// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import RecordFormats
internal import TestCertificates
internal import Testing

@testable import RegistrarAccess

@Suite struct `Access by App Attest` {
    private static let now = AttestedClock.now
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let other = "fedcba9876543210fedcba9876543210"

    private static func trust(_ secrets: String) throws -> AppAttestAccess.Trust {
        AppAttestAccess.Trust(
            roots: try TrustedRoots(pem: AttestationAuthorities.shared.root.certificatePEM),
            secrets: try AttestSecrets(Array(secrets.utf8)))
    }

    private static func access(_ secrets: String = secret) throws -> AppAttestAccess {
        AppAttestAccess(
            AccessSettings.AppAttest(
                rootFile: "", secretFile: "", teamIDs: [AccessFixture.app: AccessFixture.team]),
            try trust(secrets))
    }

    /// Has a new key attested.
    private static func attested(
        by access: AppAttestAccess
    ) throws -> (app: AttestedApp, credential: String) {
        let challenge = try access.challenge(for: AccessFixture.subject, now: now)
        let app = try AttestedApp { $0.challenge = challenge.challenge }
        let issued = try access.attest(request(app, challenge.challenge), now: now)
        return (app, issued.credential.text)
    }

    private static func request(_ app: AttestedApp, _ challenge: String) -> AttestationRequest {
        AttestationRequest(
            app: AccessFixture.app, environment: .production,
            installation: AccessFixture.installation, keyID: Base64.encode(app.keyID),
            attestation: Base64.encode(app.attestation), challenge: challenge)
    }

    /// The problem of a request with an assertion; nil if it is let in.
    private static func problem(
        _ access: AppAttestAccess, _ request: AccessRequest, now: WallTime = now
    ) -> AccessRefusal.Problem? {
        guard case .appAttest(let parameters)? = AuthorizationHeader(request.authorization[0])
        else {
            Issue.record("no assertion")
            return nil
        }
        do throws(AccessRefusal) {
            let presented = try access.presented(parameters, with: request, now: now)
            _ = try access.caller(of: presented, request, body: request.body, now: now)
            return nil
        } catch { return error.problem }
    }

    @Test func `an app attests a key, and asserts what it writes with it`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        let request = try app.asserting(
            AccessFixture.request(), credential: credential, date: Self.now)
        guard case .appAttest(let parameters)? = AuthorizationHeader(request.authorization[0])
        else { return }
        // Another replica, which shares the secret alone.
        let replica = try Self.access()
        let caller = try replica.caller(
            of: replica.presented(parameters, with: request, now: Self.now), request,
            body: request.body, now: Self.now)
        #expect(caller.id == "appAttest:" + Hexadecimal.encode(app.keyID.prefix(8)))
        let (name, installation) = (AccessFixture.app, AccessFixture.installation)
        #expect(caller.allows(app: name, environment: .production, installation: installation))
        #expect(!caller.allows(app: name, environment: .development, installation: installation))
        #expect(!caller.allows(app: name, environment: .production, installation: "6F1D"))
        #expect(!caller.allows(app: "x", environment: .production, installation: installation))
        #expect(caller.allows(subject: "any".utf8))
    }

    @Test func `a challenge is for one installation, and 5 minutes`() throws {
        let access = try Self.access()
        let challenge = try access.challenge(for: AccessFixture.subject, now: Self.now)
        #expect(challenge.expiresAt <= Self.now + .seconds(300))
        let secrets = try AttestSecrets(Array(Self.secret.utf8))
        func isValid(
            _ text: String? = nil, for change: (inout AttestationSubject) -> Void = { _ in },
            now: WallTime = Self.now
        ) -> Bool {
            var subject = AccessFixture.subject
            change(&subject)
            return AttestChallenge.isValid(
                text ?? challenge.challenge, for: subject, now: now, secrets)
        }
        #expect(isValid())
        #expect(!isValid(for: { $0.app = "com.example.Hom" }))
        #expect(!isValid(for: { $0.environment = .development }))
        #expect(!isValid(for: { $0.installation = "6F1D" }))
        #expect(isValid(now: Self.now + .seconds(298)))
        #expect(!isValid(now: Self.now + .seconds(300)))
        #expect(!isValid("") && !isValid("AAAA") && !isValid(challenge.challenge + "A"))
        let again = try access.challenge(for: AccessFixture.subject, now: Self.now)
        #expect(again.challenge != challenge.challenge)
    }

    @Test func `an attestation for an old, foreign or altered challenge gives no credential`()
        throws
    {
        let access = try Self.access()
        let challenge = try access.challenge(for: AccessFixture.subject, now: Self.now).challenge
        let app = try AttestedApp { $0.challenge = challenge }
        let request = Self.request(app, challenge)
        func problem(_ request: AttestationRequest, now: WallTime) -> AccessRefusal.Problem? {
            do throws(AccessRefusal) {
                _ = try access.attest(request, now: now)
                return nil
            } catch { return error.problem }
        }
        #expect(problem(request, now: Self.now + .seconds(301)) == .challengeRefused)
        var changed = request
        changed.installation = "6F1D"
        #expect(problem(changed, now: Self.now) == .challengeRefused)
        #expect(problem(request, now: Self.now) == nil)
        changed = request
        changed.environment = .development
        #expect(problem(changed, now: Self.now) == .challengeRefused)
        changed = request
        changed.app = "com.example.Lights"
        #expect(problem(changed, now: Self.now) == .attestationNotOffered)
        changed = request
        changed.challenge = try Self.access(Self.other).challenge(
            for: AccessFixture.subject, now: Self.now
        ).challenge
        #expect(problem(changed, now: Self.now) == .challengeRefused)
        changed = request
        changed.challenge = try access.challenge(for: AccessFixture.subject, now: Self.now)
            .challenge
        #expect(problem(changed, now: Self.now) == .attestationRefused)
        for text in ["", "*", request.keyID + "="] {
            changed = request
            changed.keyID = text
            changed.challenge = try access.challenge(for: AccessFixture.subject, now: Self.now)
                .challenge
            #expect(problem(changed, now: Self.now) == .attestationRefused)
        }
        // Before its challenge counts as used: the key is remembered with it.
        changed = request
        changed.keyID = String(repeating: "A", count: 60_000)
        changed.challenge = try access.challenge(for: AccessFixture.subject, now: Self.now)
            .challenge
        #expect(throws: AccessRefusal.self) {
            try access.checkChallenge(of: changed, now: Self.now)
        }
        changed = request
        changed.installation = String(repeating: "a", count: 300)
        #expect(problem(changed, now: Self.now) == .attestationRefused)
    }

    @Test func `a challenge is good for one key, whose answer may be asked for again`() throws {
        let access = try Self.access()
        let challenge = try access.challenge(for: AccessFixture.subject, now: Self.now).challenge
        let app = try AttestedApp { $0.challenge = challenge }
        let other = try AttestedApp { $0.challenge = challenge }
        let first = try access.attest(Self.request(app, challenge), now: Self.now)
        for seconds in [0, 10, 200, 290] as [Int64] {
            let now = Self.now + .seconds(seconds)
            let refusal = #expect(throws: AccessRefusal.self) {
                try access.attest(Self.request(other, challenge), now: now)
            }
            #expect(refusal?.problem == .challengeRefused)
            let again = try access.attest(Self.request(app, challenge), now: now)
            #expect(again.attestedKey == first.attestedKey && again.caller == first.caller)
        }
    }

    @Test func `a claim ends before its credential, so that the next key can be attested`() throws {
        let access = try Self.access()
        let challenge = try access.challenge(for: AccessFixture.subject, now: Self.now).challenge
        let app = try AttestedApp { $0.challenge = challenge }
        let issued = try access.attest(Self.request(app, challenge), now: Self.now)
        #expect(issued.claimEnds + .seconds(600) == issued.expiresAt)
        #expect(issued.attestedKey == Self.request(app, challenge).keyID)
    }

    @Test func `of used challenges no more are remembered than may be, and none too briefly`() {
        var used = UsedChallenges(life: .seconds(300), countMax: 4)
        let names = (0..<9).map { "challenge-\($0)-0123456789abcdefghijkl\($0)" }
        // Each time for another key.
        var key = 0
        func use(_ index: Int, _ seconds: Int64) -> Bool {
            key += 1
            return used.use(names[index], for: "\(key)", now: Self.now + .seconds(seconds))
        }
        let first = (0..<4).map { use($0, 0) }
        #expect(first == [true, true, true, true])
        // With the fifth, those before are the former ones.
        let later = [(4, 1), (0, 2), (4, 299), (4, 301), (4, 1000)].map { use($0, $1) }
        #expect(later == [true, false, false, false, true])
    }

    @Test func `an assertion is for one query, and taking it off removes nothing`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        var removal = AccessFixture.request(method: "DELETE", body: "")
        removal.query = "belowSequence=3"
        let asserted = try app.asserting(removal, credential: credential, date: Self.now)
        var changed = asserted
        changed.query = ""
        #expect(Self.problem(access, changed) == .assertionRefused)
        changed.query = "belowSequence=9"
        #expect(Self.problem(access, changed) == .assertionRefused)
        #expect(Self.problem(access, asserted) == nil)
    }

    @Test func `a recorded request is refused after a later one whose path is written otherwise`()
        throws
    {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        func put(_ path: String, _ counter: UInt32) throws -> AccessRequest {
            var request = AccessFixture.request()
            let resource = request.path
            request.path = resource.replacing("Garage", with: path)
            // What the route of either path is.
            request.resource = resource
            return try app.asserting(
                request, credential: credential, date: Self.now, counter: counter)
        }
        let escaped = try put("%47arage", 1)
        #expect(Self.problem(access, try put("Garage", 2)) == nil)
        #expect(Self.problem(access, escaped) == .assertionOutdated)
    }

    @Test func `what an attested app counts is not far ahead of the clock`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        let request = try app.asserting(
            AccessFixture.request(), credential: credential, date: Self.now)
        guard case .appAttest(let parameters)? = AuthorizationHeader(request.authorization[0])
        else { return }
        let caller = try access.caller(
            of: access.presented(parameters, with: request, now: Self.now), request,
            body: request.body, now: Self.now)
        let milliseconds = Self.now.milliseconds
        for allowed in [0, 17, milliseconds, milliseconds + 365 * 86_400_000] {
            #expect(caller.allows(sequence: allowed, now: Self.now))
        }
        #expect(!caller.allows(sequence: milliseconds + 3700 * 86_400_000, now: Self.now))
        #expect(!caller.allows(sequence: (1 << 53) - 1, now: Self.now))
        #expect(Caller(id: "service:x", rights: Rights()).allows(sequence: 1 << 52, now: Self.now))
    }

    @Test func `a credential is refused if altered, of another secret, or expired`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        func problem(
            _ access: AppAttestAccess, _ credential: String, now: WallTime = Self.now
        ) throws -> AccessRefusal.Problem? {
            Self.problem(
                access,
                try app.asserting(AccessFixture.request(), credential: credential, date: now),
                now: now)
        }
        #expect(try problem(access, credential) == nil)
        let late = Self.now + .seconds(90 * 86_400)
        #expect(try problem(access, credential, now: late + .seconds(-2)) == nil)
        #expect(try problem(access, credential, now: late) == .credentialRefused)
        #expect(try problem(Self.access(Self.other), credential) == .credentialRefused)
        var bytes = try #require(Base64URL.decode(credential))
        for index in bytes.indices {
            bytes[index] ^= 0x20
            #expect(try problem(access, Base64URL.encode(bytes)) == .credentialRefused)
            bytes[index] ^= 0x20
        }
        // What the registrar signed for something else.
        let challenge = try access.challenge(for: AccessFixture.subject, now: Self.now).challenge
        for wrong in ["", "AAAA", credential + "A", challenge] {
            #expect(try problem(access, wrong) == .credentialRefused)
        }
    }

    @Test func `a credential is for one app, environment and installation`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        for (request, problem) in [
            (AccessFixture.request(app: "com.example.Lights"), .appNotAllowed),
            (AccessFixture.request(environment: .development), .appNotAllowed),
            (AccessFixture.request(installation: "6F1D"), .installationNotAllowed),
            (AccessFixture.request(installation: nil), .installationNotAllowed),
        ] as [(AccessRequest, AccessRefusal.Problem)] {
            let asserted = try app.asserting(request, credential: credential, date: Self.now)
            #expect(Self.problem(access, asserted) == problem)
        }
    }

    @Test func `an assertion is for one method, path, date and body`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        let request = try app.asserting(
            AccessFixture.request(), credential: credential, date: Self.now)
        #expect(Self.problem(access, request) == nil)
        var changed = request
        changed.method = "DELETE"
        #expect(Self.problem(access, changed) == .assertionRefused)
        changed = request
        changed.path += "s"
        #expect(Self.problem(access, changed) == .assertionRefused)
        changed = request
        changed.body += [0x20]
        #expect(Self.problem(access, changed) == .assertionRefused)
        changed = request
        let date = (Self.now + .seconds(1)).rfc3339
        changed.authorization[0].replace(Self.now.rfc3339, with: date)
        #expect(Self.problem(access, changed) == .assertionRefused)
    }

    @Test func `an assertion of another key, another app or with counter 0 is refused`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        let stranger = try AttestedApp()
        let request = AccessFixture.request()
        #expect(
            Self.problem(
                access, try stranger.asserting(request, credential: credential, date: Self.now))
                == .assertionRefused)
        #expect(
            Self.problem(
                access,
                try app.asserting(request, credential: credential, date: Self.now, counter: 0))
                == .assertionRefused)
        let hash = [UInt8](repeating: 1, count: 32)
        let appID = "\(AccessFixture.team).\(AccessFixture.app)"
        func fault(_ text: String) -> AssertionFault? {
            guard let assertion = Base64.decode(exactly: text).flatMap({ Assertion($0) }) else {
                return .malformed
            }
            do throws(AssertionFault) {
                try assertion.verify(key: app.point, clientDataHash: hash, appID: appID)
                return nil
            } catch { return error }
        }
        #expect(fault(try app.assertion(hash)) == nil)
        #expect(fault(try app.assertion(hash, appID: "A1B2C3D4E5.com.example.Lights")) == .appID)
        #expect(fault(try app.assertion(hash, counter: 0)) == .counter)
        #expect(fault(try app.assertion(hash.reversed() + [2])) == .signature)
        #expect(fault(try app.assertion(hash) + "AAAA") == .malformed)
        #expect(fault("") == .malformed && fault("oA==") == .malformed)
    }

    @Test func `an assertion is refused 5 minutes before and after its date`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        for (seconds, problem) in [
            (300, nil), (-300, nil), (301, .assertionOutdated), (-301, .assertionOutdated),
        ] as [(Int64, AccessRefusal.Problem?)] {
            let request = try app.asserting(
                AccessFixture.request(), credential: credential,
                date: Self.now + .seconds(seconds))
            #expect(Self.problem(access, request) == problem)
        }
    }

    @Test func `a recorded request is refused after a later one for the same thing`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        func made(_ method: String, _ counter: UInt32, _ handler: String) throws -> AccessRequest {
            try app.asserting(
                AccessFixture.request(method: method, handler: handler), credential: credential,
                date: Self.now, counter: counter)
        }
        let put = try made("PUT", 1, "controls/Garage")
        let other = try made("PUT", 2, "widgets")
        let delete = try made("DELETE", 3, "controls/Garage")
        #expect(Self.problem(access, put) == nil)
        #expect(Self.problem(access, put) == nil)
        #expect(Self.problem(access, delete) == nil)
        #expect(Self.problem(access, put) == .assertionOutdated)
        #expect(Self.problem(access, delete) == nil)
        // What it did not touch may still come, and reading is in no order.
        #expect(Self.problem(access, other) == nil)
        #expect(Self.problem(access, try made("GET", 1, "controls/Garage")) == nil)
        let again = try made("PUT", 4, "controls")
        #expect(Self.problem(access, again) == nil)
        #expect(Self.problem(access, delete) == .assertionOutdated)
    }

    @Test func `a secret is rotated while what the former one signed stays valid`() throws {
        let access = try Self.access()
        let (app, credential) = try Self.attested(by: access)
        let request = try app.asserting(
            AccessFixture.request(), credential: credential, date: Self.now)
        access.secretsChanged(
            to: try AttestSecrets(Array("# new\n\(Self.other)\n\(Self.secret)\n".utf8)))
        #expect(Self.problem(access, request) == nil)
        let (newApp, newCredential) = try Self.attested(by: access)
        access.secretsChanged(to: try AttestSecrets(Array(Self.other.utf8)))
        #expect(Self.problem(access, request) == .credentialRefused)
        let newRequest = try newApp.asserting(
            AccessFixture.request(), credential: newCredential, date: Self.now)
        #expect(Self.problem(access, newRequest) == nil)
    }

    @Test func `what is signed as one thing is no other`() throws {
        let secrets = try AttestSecrets(Array(Self.secret.utf8))
        let challenge = secrets.signed(.challenge, [1, 2])
        #expect(secrets.statement(.challenge, in: challenge) == [1, 2])
        #expect(secrets.statement(.credential, in: challenge) == nil)
    }

    @Test(arguments: [
        "", "# nothing\n", "short", "0123456789abcdef0123456789abcde",
        "\(secret)\n\(other)\n\(secret)", "\(secret)\nshort", "\u{FEFF}",
    ])
    func `a file of secrets has one or two of 32 characters at least`(text: String) {
        do throws(FileFault) {
            _ = try AttestSecrets(Array(text.utf8))
            Issue.record("accepted")
        } catch { #expect(!error.description.contains("0123456789")) }
    }
}
