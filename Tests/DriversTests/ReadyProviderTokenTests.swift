// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import OpenSSL
internal import PushModel
internal import Testing

@testable internal import APNSDelivery

private let start = WallTime(milliseconds: 1_763_712_000_000)

private func now(minute: Int64) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: minute * 60_000_000_000),
        wall: start + .seconds(minute * 60))
}

private func jwt(
    header: String = #"{"alg":"ES256","kid":"HOMEKEY001"}"#,
    claims: String = #"{"iss":"HOMETEAM01","iat":1763712000}"#,
    signature: [UInt8] = Array(repeating: 7, count: 64)
) -> String {
    [Array(header.utf8), Array(claims.utf8), signature].map(Base64URL.encode)
        .joined(separator: ".")
}

@Suite struct `Ready provider tokens` {
    @Test func `a ready token of Apple's form is read, and sent as it is`() throws {
        let token = try ReadyProviderToken(jwt())
        #expect(token.keyID == "HOMEKEY001" && token.teamID == "HOMETEAM01")
        #expect(token.issuedAt == start)
        let tokens = ProviderTokens(SigningKey(token))
        let current = try tokens.current(now: now(minute: 1))
        #expect(String(decoding: current.bearer, as: UTF8.self) == "bearer " + jwt())
        #expect(tokens.age(at: now(minute: 50)) == .seconds(3000))
    }

    @Test(arguments: [
        "", "abc", "a.b", jwt() + ".", "bearer " + jwt(), jwt() + "=", jwt(signature: [1, 2, 3]),
        jwt(header: "{}"), jwt(header: #"{"alg":"HS256","kid":"HOMEKEY001"}"#),
        jwt(header: #"{"alg":"none","kid":"HOMEKEY001"}"#), jwt(header: #"{"alg":"ES256"}"#),
        jwt(header: #"{"alg":"ES256","kid":"a\"b"}"#), jwt(header: #"{"alg":"ES256","kid":7}"#),
        jwt(header: "[]"), jwt(claims: "nothing"), jwt(claims: #"{"iat":1763712000}"#),
        jwt(claims: #"{"iss":"HOMETEAM01"}"#), jwt(claims: #"{"iss":"HOMETEAM01","iat":"now"}"#),
        jwt(claims: #"{"iss":"HOMETEAM01","iat":-1}"#),
        jwt(claims: #"{"iss":"HOMETEAM01","iat":9223372036854775807}"#),
        jwt(claims: #"{"iss":"HOMETEAM01","iat":1763712000.5}"#),
        String(repeating: "A", count: 5000),
    ])
    func `what is no ready token is refused with what is wrong, and never quoted`(text: String) {
        do {
            _ = try ReadyProviderToken(text)
            Issue.record("it was taken")
        } catch {
            guard case .ready = error else {
                Issue.record("another error: \(error)")
                return
            }
            for part in text.split(separator: ".") where part.count > 3 {
                #expect(!"\(error)".contains(part))
            }
        }
    }

    @Test func `a ready token is not sent when APNs would refuse it for its age`() throws {
        let tokens = ProviderTokens(SigningKey(try ReadyProviderToken(jwt())))
        _ = try tokens.current(now: now(minute: 58))
        #expect(throws: ProviderTokenError.readyTooOld(.seconds(59 * 60))) {
            try tokens.current(now: now(minute: 59))
        }
    }

    @Test func `ready tokens of one key go on one connection, in the order of their age`() throws {
        let first = SigningKey(try ReadyProviderToken(jwt()))
        let later = jwt(claims: #"{"iss":"HOMETEAM01","iat":1763714400}"#)
        let second = SigningKey(try ReadyProviderToken(later))
        let tokens = ProviderTokens(first)
        let old = try tokens.current(now: now(minute: 40))
        tokens.use(second)
        let new = try tokens.current(now: now(minute: 41))
        #expect(new.keyGeneration == old.keyGeneration && new.generation > old.generation)
        // What APNs says of the old one means that there is a newer one.
        #expect(try tokens.refused(old, now: now(minute: 42)) == .keep)
        #expect(try tokens.refused(new, now: now(minute: 42)) == .tooEarly(age: .seconds(120)))
        let other = jwt(header: #"{"alg":"ES256","kid":"HOMEKEY002"}"#)
        let another = SigningKey(try ReadyProviderToken(other))
        #expect(another.number != first.number, "another key has connections of its own")
    }
}
