// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import PushModel
internal import RecordFormats
internal import Synchronization
internal import TestCertificates
internal import Testing

@testable import RegistrarAccess

@Suite struct `Access control` {
    private static let now = AttestedClock.now

    /// All three ways in, with files in a folder.
    private struct World {
        let folder: AccessFolder
        let notices = RecordedNotices()
        let issuer: TokenIssuer
        let key: ServiceKey
        var settings = AccessSettings()

        init() throws {
            folder = try AccessFolder()
            issuer = try TokenIssuer.es256()
            key = try #require(ServiceKey.make(id: "backend", apps: [AccessFixture.app]))
            settings.serviceKeysFile = try folder.write(key.line + "\n", "keys")
            let set = String(decoding: TokenIssuer.set(issuer.jwk()), as: UTF8.self)
            settings.jwt = AccessSettings.JWT(
                keys: .file(try folder.write(set, "jwks.json")), issuer: TokenIssuer.issuer,
                audience: TokenIssuer.audience)
            settings.appAttest = AccessSettings.AppAttest(
                rootFile: try folder.write(
                    AttestationAuthorities.shared.root.certificatePEM, "root.pem"),
                secretFile: try folder.write("0123456789abcdef0123456789abcdef\n", "secret"),
                teamIDs: [AccessFixture.app: AccessFixture.team])
        }

        func control() throws -> AccessControl {
            try AccessControl(settings, notice: notices.record)
        }

        /// The tests' tokens are of a fixed time.
        func token(_ changes: [String: String] = [:]) throws -> String {
            let seconds = `Access control`.now.seconds
            return try issuer.token(
                ["exp": "\(seconds + 600)", "iat": "\(seconds)"].merging(changes) { $1 })
        }
    }

    @Test func `each of the three ways lets its caller in`() throws {
        let world = try World()
        let control = try world.control()
        for (authorization, id) in [
            ("Bearer \(world.key.key.text)", "service:backend"),
            ("bearer \(try world.token())", "jwt:user-1"),
        ] {
            let answer = control.caller(of: AccessFixture.request(authorization), now: Self.now)
            #expect(answer.caller?.id == id)
        }
        let (app, credential) = try Self.attested(control)
        let request = try app.asserting(
            AccessFixture.request(), credential: credential, date: Self.now)
        #expect(
            control.caller(of: request, now: Self.now).caller?.id.hasPrefix("appAttest:") == true)
        #expect(control.counts.accepted == [.service: 1, .jwt: 1, .appAttest: 1])
        #expect(control.counts.attested == 1 && control.counts.refused.isEmpty)
    }

    private static func attested(
        _ control: AccessControl
    ) throws -> (app: AttestedApp, credential: String) {
        let challenge = try control.challenge(for: AccessFixture.subject, now: now).get().challenge
        let app = try AttestedApp { $0.challenge = challenge }
        let issued = try control.attest(
            AttestationRequest(
                app: AccessFixture.app, environment: .production,
                installation: AccessFixture.installation, keyID: Base64.encode(app.keyID),
                attestation: Base64.encode(app.attestation), challenge: challenge), now: now
        ).get()
        #expect(issued.expiresAt > now && !"\(issued)".contains(issued.credential.text))
        return (app, issued.credential.text)
    }

    @Test func `without credentials the answer names the schemes that are accepted`() throws {
        let world = try World()
        let refusal = try #require(
            try world.control().caller(of: AccessFixture.request(), now: Self.now).refusal)
        #expect(refusal.problem == .credentialsRequired && refusal.status == 401)
        #expect(
            refusal.wwwAuthenticate
                == #"Bearer realm="lamplighter", AppAttest realm="lamplighter""#)
        var settings = AccessSettings(serviceKeysFile: world.settings.serviceKeysFile)
        let service = try AccessControl(settings) { _ in }
        #expect(
            service.caller(of: AccessFixture.request("Bearer llr_x"), now: Self.now).refusal?
                .wwwAuthenticate == #"Bearer realm="lamplighter", error="invalid_token""#)
        settings.serviceKeysFile = nil
        let nobody = try AccessControl(settings) { _ in }
        let bearer = AccessFixture.request("Bearer \(world.key.key.text)")
        #expect(nobody.caller(of: bearer, now: Self.now).problem == .schemeNotOffered)
        #expect(
            nobody.challenge(for: AccessFixture.subject, now: Self.now)
                .refusal?.problem == .attestationNotOffered)
    }

    @Test func `two headers, a malformed one and another scheme are refused`() throws {
        let world = try World()
        let control = try world.control()
        let key = "Bearer \(world.key.key.text)"
        for (request, problem) in [
            (AccessFixture.request(key, key), .credentialsMalformed),
            (AccessFixture.request("Bearer"), .credentialsMalformed),
            (AccessFixture.request("Basic dXNlcg=="), .schemeNotOffered),
            (AccessFixture.request("Bearer llr_unknown"), .serviceKeyUnknown),
            (AccessFixture.request("Bearer a.b.c"), .tokenRefused),
            (AccessFixture.request(key, app: "com.example.Lights"), .appNotAllowed),
            (
                AccessFixture.request("Bearer \(try world.token())", installation: "X"),
                .installationNotAllowed
            ),
        ] as [(AccessRequest, AccessRefusal.Problem)] {
            let refusal = try #require(control.caller(of: request, now: Self.now).refusal)
            #expect(refusal.problem == problem)
            #expect((refusal.wwwAuthenticate != nil) == (refusal.status == 401))
        }
        #expect(control.counts.refused[.credentialsMalformed] == 2)
    }

    @Test func `a request about several installations is let in by what its path names`() throws {
        let world = try World()
        let control = try world.control()
        for authorization in ["Bearer \(world.key.key.text)", "Bearer \(try world.token())"] {
            let request = AccessFixture.request(authorization, installation: nil)
            let caller = try #require(control.caller(of: request, now: Self.now).caller)
            #expect(
                caller.allows(
                    app: AccessFixture.app, environment: .production,
                    installation: AccessFixture.installation))
        }
    }

    @Test func `a refusal quotes nothing of what was sent`() throws {
        let world = try World()
        let control = try world.control()
        let canary = "canary"
        for authorization in [
            "Bearer llr_canary", "canary canary", "Bearer canary", "Bearer canary.canary.canary",
            "Bearer \(try world.token(["iss": "\"canary\"", "sub": "\"canary\""]))",
            "Bearer \(try world.issuer.token(header: #"{"alg":"canary","kid":"canary"}"#))",
            "Bearer \(try TokenIssuer.es256("canary").token())",
            #"AppAttest credential="canary", assertion="canary", date="canary""#,
        ] {
            let request = AccessFixture.request(authorization)
            let refusal = try #require(control.caller(of: request, now: Self.now).refusal)
            #expect(!"\(refusal)".lowercased().contains(canary))
            for text in [refusal.detail, refusal.remedy] {
                #expect(text.hasSuffix(".") && text.utf8.count < 200)
            }
        }
    }

    @Test func `a new file of service keys is in force, a wrong one is told and the old one stays`()
        throws
    {
        let world = try World()
        let control = try world.control()
        let next = try #require(ServiceKey.make(id: "next", apps: []))
        func id(_ key: ServiceKey) -> String? {
            control.caller(of: AccessFixture.request("Bearer \(key.key.text)"), now: Self.now)
                .caller?.id
        }
        var time = Self.now
        func refresh() {
            time = time + .seconds(5)
            control.refresh(now: time)
        }
        refresh()
        #expect(world.notices.texts.filter { $0.contains("serviceKeysFile") }.isEmpty)
        try world.folder.write(next.line + "\n", "keys")
        refresh()
        #expect(id(next) == "service:next" && id(world.key) == nil)
        try world.folder.write("\(next.line)\nwrong", "keys")
        refresh()
        refresh()
        #expect(id(next) == "service:next")
        let file = world.folder.file("keys")
        #expect(
            world.notices.faults == [
                "registrar.auth.serviceKeysFile: \(file) has a wrong line 2: a line has an "
                    + "identifier, the key's SHA-256 and the apps; what it said before stays in "
                    + "force"
            ])
        #expect(control.counts.faults == 2)
        try world.folder.write("# nobody any more\n", "keys")
        refresh()
        #expect(id(next) == nil)
    }

    @Test func `files are looked at every 5 seconds`() throws {
        let world = try World()
        let control = try world.control()
        control.refresh(now: Self.now)
        try world.folder.write("#\n", "keys")
        let request = AccessFixture.request("Bearer \(world.key.key.text)")
        control.refresh(now: Self.now + .seconds(4))
        #expect(control.caller(of: request, now: Self.now).caller != nil)
        control.refresh(now: Self.now + .seconds(5))
        #expect(control.caller(of: request, now: Self.now).caller == nil)
    }

    @Test func `a key that the issuer has added is fetched when a token has it`() throws {
        var world = try World()
        world.settings.jwt?.keys = .url("https://login.example.com/keys")
        let next = try TokenIssuer.es256("es-2")
        let set = Mutex(TokenIssuer.set(world.issuer.jwk()))
        let control = try AccessControl(
            world.settings, fetch: { .success(set.withLock { $0 }) }, notice: world.notices.record)
        control.refresh(now: Self.now)
        set.withLock { $0 = TokenIssuer.set(world.issuer.jwk(), next.jwk()) }
        let seconds = Self.now.seconds
        let token = try next.token(["exp": "\(seconds + 900)", "iat": "\(seconds)"])
        let request = AccessFixture.request("Bearer \(token)")
        control.refresh(now: Self.now + .seconds(31))
        #expect(control.caller(of: request, now: Self.now).problem == .tokenKeyUnknown)
        control.refresh(now: Self.now + .seconds(32))
        #expect(control.caller(of: request, now: Self.now).caller != nil)
    }

    @Test func `a key that is taken out of a file verifies nothing after 5 seconds`() throws {
        let world = try World()
        let control = try world.control()
        let request = AccessFixture.request("Bearer \(try world.token())")
        #expect(control.caller(of: request, now: Self.now).caller != nil)
        let next = try TokenIssuer.es256("es-2").jwk()
        try world.folder.write(
            String(decoding: TokenIssuer.set(next), as: UTF8.self), "jwks.json")
        control.refresh(now: AttestedClock.now + .seconds(60))
        #expect(control.caller(of: request, now: Self.now).problem == .tokenKeyUnknown)
    }

    @Test func `keys behind a URL that is away are not there at first, and told once`() throws {
        var world = try World()
        world.settings.jwt?.keys = .url("https://login.example.com/keys")
        let control = try AccessControl(
            world.settings, fetch: { .failure(FileFault("is away")) }, notice: world.notices.record)
        let request = AccessFixture.request("Bearer \(try world.token())")
        #expect(control.caller(of: request, now: Self.now).problem == .tokenKeysUnavailable)
        control.refresh(now: Self.now)
        control.refresh(now: Self.now + .seconds(30))
        #expect(world.notices.faults == ["the key set https://login.example.com/keys is away"])
        #expect(control.counts.faults == 2)
    }

    @Test func `the thread refreshes until it is stopped`() throws {
        var world = try World()
        // A file of keys would have all files looked at now, and then not for 5 seconds.
        world.settings.jwt = nil
        let control = try world.control()
        try world.folder.write("#\n", "keys")
        try control.start()
        defer { control.stop() }
        let request = AccessFixture.request("Bearer \(world.key.key.text)")
        let patience = Patience()
        while control.caller(of: request, now: Self.now).caller != nil,
            !patience.isOver
        { NamedPause.short() }
        #expect(control.caller(of: request, now: Self.now).problem == .serviceKeyUnknown)
    }

    @Test func `wrong settings are refused by the name of their key`() throws {
        let world = try World()
        func key(_ change: (inout AccessSettings) -> Void) -> String? {
            var settings = world.settings
            change(&settings)
            do throws(AccessSettingsError) {
                _ = try AccessControl(settings) { _ in }
                return nil
            } catch { return error.key }
        }
        let none = world.folder.file("none")
        let empty = try world.folder.write("", "empty")
        #expect(key { _ in } == nil)
        #expect(key { $0.serviceKeysFile = none } == "registrar.auth.serviceKeysFile")
        #expect(key { $0.serviceKeysFile = empty } == "registrar.auth.serviceKeysFile")
        #expect(key { $0.jwt?.keys = .file(none) } == "registrar.auth.jwt.jwksFile")
        #expect(key { $0.jwt?.keys = .file(empty) } == "registrar.auth.jwt.jwksFile")
        #expect(key { $0.jwt?.keys = .url("http://a/") } == "registrar.auth.jwt.jwksURL")
        #expect(key { $0.jwt?.issuer = "" } == "registrar.auth.jwt.issuer")
        #expect(key { $0.jwt?.audience = "" } == "registrar.auth.jwt.audience")
        #expect(key { $0.jwt?.installationClaim = "" } == "registrar.auth.jwt.installationClaim")
        #expect(key { $0.jwt?.refreshInterval = .zero } == "registrar.auth.jwt.refreshInterval")
        #expect(key { $0.appAttest?.rootFile = none } == "registrar.auth.appAttest.rootFile")
        #expect(key { $0.appAttest?.rootFile = empty } == "registrar.auth.appAttest.rootFile")
        #expect(key { $0.appAttest?.secretFile = empty } == "registrar.auth.appAttest.secretFile")
        #expect(key { $0.appAttest?.teamIDs = [:] } == "registrar.auth.appAttest.teamIDs")
        for team in ["", "A1B2C3D4E", "a1b2c3d4e5", "A1B2C3D4E5F"] {
            #expect(
                key { $0.appAttest?.teamIDs = ["com.example.Home": team] }
                    == "registrar.auth.appAttest.teamIDs")
        }
    }
}
