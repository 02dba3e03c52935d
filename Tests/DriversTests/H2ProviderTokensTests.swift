// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import OpenSSL
internal import PushModel
internal import Testing

private func now(minute: Int64) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: minute * 60_000_000_000),
        wall: WallTime(milliseconds: 1_763_712_000_000 + minute * 60_000))
}

private func text(_ token: ProviderToken) -> String {
    String(decoding: token.bearer, as: UTF8.self)
}

@Suite struct `Provider tokens` {
    @Test func `are ES256 JWTs with a raw signature that the public key verifies`() throws {
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

    @Test func `are kept for 45 minutes and minted anew then`() throws {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(try tokens.current(now: now(minute: 44)) === first)
        let second = try tokens.current(now: now(minute: 45))
        #expect(second.generation == first.generation + 1)
        #expect(second.keyGeneration == first.keyGeneration)
    }

    @Test func `are minted once for many refusals, and never within 20 minutes`() throws {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(try tokens.refused(first, now: now(minute: 19)) == .tooEarly)
        #expect(try tokens.refused(first, now: now(minute: 21)) == .mint)
        #expect(try tokens.refused(first, now: now(minute: 21)) == .keep)
        #expect(try tokens.current(now: now(minute: 21)).generation == first.generation + 1)
    }

    @Test func `follow a replaced key, and survive a broken one`() throws {
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let first = try tokens.current(now: now(minute: 0))
        #expect(throws: ProviderTokenError.self) { try tokens.replaceKey(pem: "nonsense") }
        #expect(try tokens.current(now: now(minute: 1)) === first)
        try tokens.replaceKey(pem: try ES256Key.generate().privatePEM, keyID: "K2")
        let second = try tokens.current(now: now(minute: 1))
        #expect(second.keyGeneration == first.keyGeneration + 1)
    }

    @Test func `are refused for unsound identifiers and keys, without quoting the key`() throws {
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
