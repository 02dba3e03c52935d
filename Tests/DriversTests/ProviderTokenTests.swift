// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import OpenSSL
internal import PushModel
internal import Testing

/// - Parameter set: by how many minutes the wall clock has been set since the start.
private func now(minute: Int64, set: Int64 = 0) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: minute * 60_000_000_000),
        wall: WallTime(milliseconds: 1_763_712_000_000 + (minute + set) * 60_000))
}

private func text(_ token: ProviderToken) -> String {
    String(decoding: token.bearer, as: UTF8.self)
}

@Suite struct `Provider tokens` {
    @Test func `provider tokens are ES256 JWTs with a raw signature that the public key verifies`()
        throws
    {
        let key = try ES256Key.generate()
        let tokens = try ProviderTokens(
            teamID: "TEAM123456", keyID: "KEY7654321", pem: key.privatePEM)
        let bearer = text(try tokens.current(now: now(minute: 0)))
        #expect(bearer.hasPrefix("bearer "))
        #expect(!bearer.contains("="))
        let parts = bearer.dropFirst(7).split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        #expect(decoded(parts[0]) == Data(#"{"alg":"ES256","kid":"KEY7654321"}"#.utf8))
        #expect(decoded(parts[1]) == Data(#"{"iss":"TEAM123456","iat":1763712000}"#.utf8))
        let signature = try #require(decoded(parts[2]))
        #expect(signature.count == 64)
        let verifier = try ES256PublicKey(pem: key.publicPEM)
        #expect(
            verifier.verify(
                Array((parts[0] + "." + parts[1]).utf8), signature: signature))
    }

    @Test func `provider tokens are kept for 45 minutes and minted anew then`() throws {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(try tokens.current(now: now(minute: 44)) === first)
        let second = try tokens.current(now: now(minute: 45))
        #expect(second.generation == first.generation + 1)
        #expect(second.keyGeneration == first.keyGeneration)
    }

    @Test func `provider tokens are minted once for many refusals, and never within 20 minutes`()
        throws
    {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(
            try tokens.refused(first, now: now(minute: 19)) == .tooEarly(age: .seconds(19 * 60)))
        #expect(try tokens.refused(first, now: now(minute: 21)) == .mint)
        #expect(try tokens.refused(first, now: now(minute: 21)) == .keep)
        #expect(try tokens.current(now: now(minute: 21)).generation == first.generation + 1)
    }

    @Test func `provider tokens are minted anew when the wall clock shows that they are misdated`()
        throws
    {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(try tokens.current(now: now(minute: 2, set: 40)) === first)
        // Set forwards by an hour: APNs takes none that says what it says.
        let second = try tokens.current(now: now(minute: 2, set: 60))
        #expect(second !== first)
        #expect(try tokens.current(now: now(minute: 3, set: 60)) === second)
        // Set back again: it lies in the future.
        let third = try tokens.current(now: now(minute: 4))
        #expect(third !== second)
        #expect(try tokens.refused(third, now: now(minute: 5, set: 10)) == .mint)
    }

    @Test func `provider tokens are of another key from when it is used`() throws {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        let key = try SigningKey(
            teamID: "T", keyID: "K2", pem: try ES256Key.generate().privatePEM)
        tokens.use(key)
        let second = try tokens.current(now: now(minute: 1))
        #expect(second.keyGeneration != first.keyGeneration)
        #expect(tokens.keyInUse.keyID == "K2")
        // What is said of the old one concerns nobody.
        #expect(try tokens.refused(first, now: now(minute: 30)) == .keep)
        tokens.keyRefused(first.keyGeneration)
        #expect(!tokens.takeRefusal())
        tokens.keyRefused(second.keyGeneration)
        #expect(tokens.takeRefusal())
        #expect(!tokens.takeRefusal())
    }

    @Test func `provider tokens of one key are one in both environments`() throws {
        let key = try SigningKey(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let (production, development) = (ProviderTokens(key), ProviderTokens(key))
        let token = try production.current(now: now(minute: 0))
        #expect(try development.current(now: now(minute: 1)) === token)
    }

    @Test func `provider tokens are refused for unsound identifiers and keys, never quoted`() throws
    {
        let pem = try ES256Key.generate().privatePEM
        #expect(throws: ProviderTokenError.identifier(#"a"b"#)) {
            try ProviderTokens(teamID: #"a"b"#, keyID: "K", pem: pem)
        }
        #expect(throws: ProviderTokenError.identifier("")) {
            try ProviderTokens(teamID: "T", keyID: "", pem: pem)
        }
        let broken = pem.replacingOccurrences(of: "M", with: "!")
        do {
            _ = try ProviderTokens(teamID: "T", keyID: "K", pem: broken)
            Issue.record("a broken key was taken")
        } catch {
            let secret = pem.split(separator: "\n")[1].prefix(20)
            #expect(!"\(error)".contains(secret))
        }
    }

    private func decoded(_ part: String) -> Data? {
        var text = part.replacingOccurrences(of: "-", with: "+")
        text = text.replacingOccurrences(of: "_", with: "/")
        while text.utf8.count % 4 != 0 { text += "=" }
        return Data(base64Encoded: text)
    }
}
