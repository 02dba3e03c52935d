// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Testing

@testable import RegistrarAccess

@Suite struct `A JSON Web Token` {
    private static let es256 = try! TokenIssuer.es256()
    private static let rs256 = try! TokenIssuer.rs256()
    private static let settings = AccessSettings.JWT(
        keys: .file("unused"), issuer: TokenIssuer.issuer, audience: TokenIssuer.audience)

    private static func verifier(
        _ change: (inout AccessSettings.JWT) -> Void = { _ in }
    ) throws -> TokenVerifier {
        var settings = settings
        change(&settings)
        let verifier = TokenVerifier(settings)
        verifier.keysChanged(
            to: try JSONWebKeySet(TokenIssuer.set(es256.jwk(), rs256.jwk())),
            at: AccessFixture.now)
        return verifier
    }

    /// The fault that the token is refused for; nil if it is accepted.
    private static func refusal(
        _ token: String, after seconds: Int64 = 0,
        _ change: (inout AccessSettings.JWT) -> Void = { _ in }
    ) throws -> TokenFault? {
        let now = WallTime(milliseconds: AccessFixture.now.milliseconds + seconds * 1000)
        let answer = try verifier(change).caller(with: token, now: now)
        guard let refusal = answer.refusal else { return nil }
        let found = TokenFault.allCases.first { $0.refusal == refusal }
        let fault: TokenFault = try #require(found, "\(refusal)")
        return fault
    }

    @Test func `a token of either algorithm lets its installation in`() throws {
        for issuer in [Self.es256, Self.rs256] {
            let answer = try Self.verifier().caller(
                with: issuer.token(), now: AccessFixture.now)
            let caller = try #require(answer.caller)
            #expect(caller.id == "jwt:user-1")
            let name = AccessFixture.installation
            #expect(caller.allows(app: "any", environment: .production, installation: name))
            #expect(!caller.allows(app: "any", environment: .production, installation: "6F1"))
            #expect(caller.allows(subject: "any".utf8))
        }
    }

    @Test func `a token without a signature is refused, whatever its header says`() throws {
        let parts = try Self.es256.token().split(separator: ".").map(String.init)
        for algorithm in ["none", "None", "HS256", "ES384", "PS256", "RS512", "", "ES256\0"] {
            let header = #"{"alg":"\#(algorithm)","kid":"es-1"}"#.replacing("\0", with: "\\u0000")
            let encoded = Base64URL.encode(Array(header.utf8))
            #expect(try Self.refusal("\(encoded).\(parts[1]).") == .algorithm)
            #expect(try Self.refusal("\(encoded).\(parts[1]).\(parts[2])") == .algorithm)
        }
        #expect(try Self.refusal("\(parts[0]).\(parts[1]).") == .signature)
        #expect(try Self.refusal("\(parts[0]).\(parts[1])") == .malformed)
    }

    @Test func `the public key is no secret that signs`() throws {
        // A verifier that lets the token choose would use the key's text for HMAC.
        let header = Base64URL.encode(Array(#"{"alg":"HS256","kid":"rs-1"}"#.utf8))
        let payload = try Self.es256.token().split(separator: ".")[1]
        let signed = "\(header).\(payload)"
        let signature = HMACSHA256.of(Array(signed.utf8), key: Array(Self.rs256.jwk().utf8))
        #expect(try Self.refusal("\(signed).\(Base64URL.encode(signature))") == .algorithm)
    }

    @Test func `a signature of another key, of another text or in another form is refused`() throws
    {
        let stranger = try TokenIssuer.es256("es-1")
        #expect(try Self.refusal(stranger.token()) == .signature)
        let parts = try Self.es256.token().split(separator: ".").map(String.init)
        let other = try Self.es256.token(["sub": "\"user-2\""]).split(separator: ".")
        #expect(try Self.refusal("\(parts[0]).\(other[1]).\(parts[2])") == .signature)
        guard case .es256(let key) = Self.es256.key else { return }
        let der = Base64URL.encode(try key.signDER(Array("\(parts[0]).\(parts[1])".utf8)))
        #expect(try Self.refusal("\(parts[0]).\(parts[1]).\(der)") == .signature)
        // ES256 with the RSA key's ID: no key has both.
        let header = #"{"alg":"ES256","kid":"rs-1"}"#
        #expect(try Self.refusal(Self.es256.token(header: header)) == .unknownKey)
    }

    @Test func `a token is refused while its key is unknown, and the key is asked for`() throws {
        let stranger = try TokenIssuer.es256("es-2")
        let verifier = try Self.verifier()
        #expect(!verifier.takeUnknownKey())
        let answer = verifier.caller(with: try stranger.token(), now: AccessFixture.now)
        #expect(answer.problem == .tokenKeyUnknown)
        #expect(verifier.takeUnknownKey())
        #expect(!verifier.takeUnknownKey())
    }

    @Test(arguments: [
        (["exp": ""], TokenFault.noExpiry),
        (["exp": "\"soon\""], .wrongTime), (["exp": "1e300"], .wrongTime),
        (["exp": "null"], .wrongTime),
        (["exp": "\(TokenIssuer.seconds(-60))"], .expired),
        (["nbf": "\(TokenIssuer.seconds(61))"], .notYetValid), (["nbf": "true"], .wrongTime),
        (["iat": "\(TokenIssuer.seconds(61))"], .issuedInFuture),
        (["iss": ""], .issuer), (["iss": "\"https://login.example.com\""], .issuer),
        (["iss": "[\"https://login.example.com/\"]"], .issuer),
        (["aud": ""], .audience), (["aud": "\"lamplighte\""], .audience),
        (["aud": "[]"], .audience),
        (["aud": "[\"lamplighter\",1]"], .audience), (["aud": "\"Lamplighter\""], .audience),
        (["installation": ""], .noInstallation), (["installation": "7"], .wrongClaim),
        (["installation": "[\"6F1C\",null]"], .wrongClaim),
        (["subjectPrefixes": "{}"], .wrongClaim), (["subjectPrefixes": "null"], .wrongClaim),
    ])
    func `a token with a wrong claim is refused`(
        changes: [String: String], fault: TokenFault
    ) throws {
        #expect(try Self.refusal(Self.es256.token(changes)) == fault)
    }

    @Test(arguments: [
        ["exp": "\(TokenIssuer.seconds(-59))"], ["exp": "\(TokenIssuer.seconds(1)).75"],
        ["nbf": "\(TokenIssuer.seconds(60))"], ["iat": "\(TokenIssuer.seconds(60))"], ["iat": ""],
        ["aud": "[\"other\",\"lamplighter\"]"], ["sub": ""],
        ["installation": "[\"other\",\"6F1C\"]"], ["installation": "\"*\""],
    ])
    func `clocks may differ by a minute, and claims may be lists`(changes: [String: String]) throws
    {
        #expect(try Self.refusal(Self.es256.token(changes)) == nil)
    }

    @Test func `a token that was accepted is refused once it has expired`() throws {
        let verifier = try Self.verifier()
        let token = try Self.es256.token(["exp": "\(TokenIssuer.seconds(10))"])
        func problem(after seconds: Int64) -> AccessRefusal.Problem? {
            let now = WallTime(milliseconds: AccessFixture.now.milliseconds + seconds * 1000)
            return verifier.caller(with: token, now: now).problem
        }
        #expect(problem(after: 0) == nil)
        #expect(problem(after: 69) == nil)
        #expect(problem(after: 70) == .tokenExpired)
    }

    @Test func `a token that was accepted is refused when its key is withdrawn`() throws {
        let verifier = try Self.verifier()
        let token = try Self.es256.token()
        #expect(verifier.caller(with: token, now: AccessFixture.now).caller != nil)
        verifier.keysChanged(
            to: try JSONWebKeySet(TokenIssuer.set(Self.rs256.jwk())), at: AccessFixture.now)
        #expect(
            verifier.caller(with: token, now: AccessFixture.now).problem == .tokenKeyUnknown)
    }

    @Test func `the app, the installation and the subjects of a token limit its caller`() throws {
        let token = try Self.es256.token([
            "apps": "[\"com.example.Home\"]", "device": "\"X\"",
            "prefixes": "[\"home/1/\",\"door-\"]",
        ])
        let answer = try Self.verifier {
            $0.appClaim = "apps"
            $0.installationClaim = "device"
            $0.subjectPrefixesClaim = "prefixes"
        }.caller(with: token, now: AccessFixture.now)
        let caller = try #require(answer.caller)
        let home = "com.example.Home"
        #expect(caller.allows(app: home, environment: .development, installation: "X"))
        #expect(!caller.allows(app: "com.example", environment: .production, installation: "X"))
        #expect(!caller.allows(app: home, environment: .production, installation: "6F1C"))
        #expect(caller.allows(subject: "home/1/lamp".utf8) && caller.allows(subject: "door-".utf8))
        #expect(!caller.allows(subject: "home/11".utf8) && !caller.allows(subject: "doo".utf8))
        // A target without subjects would hear of all.
        #expect(!caller.allows(subject: []))
    }

    @Test func `a token must have an app or subject prefixes where that is configured`() throws {
        let token = try Self.es256.token()
        #expect(try Self.refusal(token) { $0.appClaim = "apps" } == .noApp)
        #expect(try Self.refusal(token) { $0.requiresSubjectPrefixes = true } == .noSubjectPrefixes)
        let one = try Self.es256.token(["subjectPrefixes": "\"a\""])
        #expect(try Self.refusal(one) { $0.requiresSubjectPrefixes = true } == nil)
    }

    @Test func `what is malformed, too large or demands an extension is refused`() throws {
        let token = try Self.es256.token()
        for wrong in [
            "", ".", "..", "a.b.c", token + ".", token + "=", "=" + token, token + " ",
            token.replacing(".", with: ".."), "e30.e30.e30", "W10.e30.",
        ] {
            let fault = try Self.refusal(wrong)
            #expect(
                fault == .malformed || wrong == "e30.e30.e30" && fault == .algorithm, "\(wrong)")
        }
        let header = #"{"alg":"ES256","kid":"es-1","crit":["b64"],"b64":false}"#
        #expect(try Self.refusal(Self.es256.token(header: header)) == .critical)
        let number = #"{"alg":"ES256","kid":1}"#
        #expect(try Self.refusal(Self.es256.token(header: number)) == .malformed)
        let text = #"{"alg":"ES256","kid":"es-1"}"#
        let list = try Self.es256.token(header: text, payload: "[]")
        #expect(try Self.refusal(list) == .malformed)
        let long = try Self.es256.token(["x": "\"\(String(repeating: "a", count: 8192))\""])
        #expect(try Self.refusal(long) == .tooLarge)
    }

    @Test func `keys that are too old, or were never fetched, verify nothing`() throws {
        let token = try Self.es256.token(["exp": "\(TokenIssuer.seconds(1_000_000))"])
        let verifier = try Self.verifier()
        let now = AccessFixture.now
        #expect(verifier.caller(with: token, now: now + .seconds(86_400)).caller != nil)
        let late = now + .seconds(86_401)
        let refusal = try #require(verifier.caller(with: token, now: late).refusal)
        #expect(refusal.problem == .tokenKeysUnavailable && refusal.status == 503)
        verifier.keysConfirmed(at: late)
        #expect(verifier.caller(with: token, now: late).caller != nil)
        #expect(
            TokenVerifier(Self.settings).caller(with: token, now: now).problem
                == .tokenKeysUnavailable)
    }

    @Test func `what is remembered of tokens is bounded`() throws {
        let claims = try JSONWebToken(Self.es256.token()).claims(Self.settings)
        var tokens = VerifiedTokens()
        for number in 0..<VerifiedTokens.countMax {
            tokens.insert(claims, UInt32(number).bigEndianBytes, now: AccessFixture.now)
        }
        #expect(tokens.count == VerifiedTokens.countMax)
        #expect(tokens[UInt32(1).bigEndianBytes] != nil)
        tokens.insert(claims, [1], now: AccessFixture.now)
        #expect(tokens.count == 1 && tokens[[1]] != nil)
    }

    @Test func `a caller's name has nothing unprintable and ends`() throws {
        let name = #""a\u0000\n é\u2028""#
        let answer = try Self.verifier().caller(
            with: Self.es256.token(["sub": name]), now: AccessFixture.now)
        #expect(answer.caller?.id == "jwt:a????????")
        let long = "\"\(String(repeating: "n", count: 500))\""
        let other = try Self.verifier().caller(
            with: Self.es256.token(["sub": long]), now: AccessFixture.now)
        #expect(other.caller?.id.utf8.count == 128)
    }
}
