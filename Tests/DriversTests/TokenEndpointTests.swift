// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Rdkafka
import Testing

@testable import KafkaLog

/// What is made of an endpoint's answers, asked directly.
@Suite struct `A token endpoint` {
    private typealias Behaviour = KafkaTokenEndpoint.Behaviour

    private static func ask(
        _ endpoint: KafkaTokenEndpoint, _ changes: [String: String] = [:],
        timeout: Duration = .seconds(20)
    ) throws -> BearerToken {
        let settings = try #require(
            try OIDCSettings(endpoint.kafkaProperties(changes)))
        return try TokenEndpoint(settings, timeout: timeout).token { now }
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    private static func failure(_ body: () throws -> BearerToken) -> TokenFailure? {
        do {
            let token = try body()
            Issue.record("gave a \(token)")
            return nil
        } catch {
            return error as? TokenFailure
        }
    }

    @Test func `the token, its subject, its end and our extensions are what the client is given`()
        throws
    {
        let endpoint = try KafkaTokenEndpoint(.token(life: 600))
        let token = try Self.ask(endpoint)
        let request = try #require(endpoint.requests.first)
        #expect(request.isInOrder)
        #expect(token.value == request.token)
        #expect(token.principal == "worker")
        #expect(token.expiresAtMilliseconds == Int64(request.expiresAt) * 1000)
        #expect(token.extensions.map(\.name) == ["logicalCluster", "poolID"])
        #expect("\(token) \(String(reflecting: token))".contains(token.value) == false)
    }

    @Test func `an endpoint that answers badly is named with what it does and what to do`() throws {
        let endpoint = try KafkaTokenEndpoint()
        let urlRemedy = "check sasl.oauthbearer.token.endpoint.url"
        let cases: [(Behaviour, TokenFailure.Kind, String)] = [
            (
                .status(401), .refused,
                "answers 401 invalid_client: check sasl.oauthbearer.client.id and its secret, and "
                    + "that the client may use the grant client_credentials"
            ),
            (.status(404), .refused, "answers 404 invalid_client: \(urlRemedy)"),
            (.status(302), .refused, "answers 302 invalid_client: \(urlRemedy)"),
            (
                .status(429), .unusable,
                "answers 429 invalid_client: have it allow a request a minute from here"
            ),
            (.status(503), .unusable, "answers 503 invalid_client: see what is wrong with it"),
            (
                .text("<html>Hello</html>"), .unusable,
                "answers with something other than a JSON object: \(urlRemedy)"
            ),
            (.text("{}"), .unusable, "answers without a usable access_token: \(urlRemedy)"),
            (
                .text(#"{"access_token":"a b\u0000","expires_in":60}"#), .unusable,
                "answers without a usable access_token: \(urlRemedy)"
            ),
            (
                .text(#"{"access_token":"opaque","expires_in":60}"#), .unusable,
                "answers with a token that is not a JSON Web Token with a subject (sub): \(urlRemedy)"
            ),
            (
                .text(#"{"access_token":"\#(Self.token(["sub": ""]))","expires_in":60}"#),
                .unusable,
                "answers with a token that is not a JSON Web Token with a subject (sub): \(urlRemedy)"
            ),
            (
                .text(#"{"access_token":"\#(Self.token(["sub": "me"]))"}"#), .unusable,
                "does not say when the token expires (exp or expires_in): \(urlRemedy)"
            ),
            (
                .token(life: -10), .unusable,
                "answers with a token that has expired: compare this machine's clock"
            ),
            (
                .megabytes(10), .unreachable,
                "does not answer with a token (the answer has more than 65536 bytes): \(urlRemedy)"
            ),
        ]
        for (behaviour, kind, text) in cases {
            endpoint.behave(behaviour)
            let failure = try #require(Self.failure { try Self.ask(endpoint) })
            #expect(failure.description == "the token endpoint \(endpoint.url) \(text)")
            #expect(failure.kind == kind, "\(behaviour)")
        }
    }

    @Test func `an endpoint that does not answer is given up in time`() throws {
        let endpoint = try KafkaTokenEndpoint(.silence)
        let failure = Self.failure { try Self.ask(endpoint, timeout: .seconds(1)) }
        #expect(
            failure?.description
                == "the token endpoint \(endpoint.url) takes the request and does not answer in "
                + "time: see why it is slow")
    }

    @Test func `a certificate is verified against https.ca.location, and its name too`() throws {
        let endpoint = try KafkaTokenEndpoint(isTLS: true)
        _ = try Self.ask(endpoint)
        let other = try KafkaTokenEndpoint(isTLS: true)
        let cases: [([String: String], String)] = [
            (
                ["https.ca.location": other.caFile],
                "shows a certificate that no trusted authority has signed"
            ),
            (["https.ca.location": "/nowhere.pem"], "must name a readable PEM file"),
            (
                [
                    "sasl.oauthbearer.token.endpoint.url":
                        "https://127.0.0.1:\(endpoint.port)/token?key=value"
                ],
                "https://127.0.0.1:\(endpoint.port)/token shows the certificate of another host"
            ),
        ]
        for (changes, text) in cases {
            let failure = Self.failure { try Self.ask(endpoint, changes) }
            #expect(failure?.description.contains(text) == true, "\(String(describing: failure))")
        }
        let expired = try KafkaTokenEndpoint(isTLS: true, isExpired: true)
        let failure = Self.failure { try Self.ask(expired) }
        #expect(failure?.description.contains("shows an expired certificate") == true)
    }

    @Test(
        arguments: [
            (["exp": 9_000_000_000_000_000_000], 60, 60_000), (["exp": -5], 60, nil),
            (["exp": 4_000_000_000], 60, 7 * 86_400_000), ([:], 60, 60_000), ([:], 0, nil),
        ] as [([String: Int], Int, Int64?)])
    func `an end that is no end is none, and a far one is brought near`(
        claims: [String: Int], life: Int, left: Int64?
    ) throws {
        var all: [String: Any] = ["sub": "me"]
        for (name, value) in claims { all[name] = value }
        let answer = try #require(
            TokenAnswer(
                Array(#"{"access_token":"\#(Self.token(all))","expires_in":\#(life)}"#.utf8)))
        let settings = try #require(
            try OIDCSettings([
                "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "OIDC", "sasl.oauthbearer.client.id": "id",
                "sasl.oauthbearer.client.secret": "secret",
                "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
            ]))
        let endpoint = TokenEndpoint(settings)
        let token = try? endpoint.token(in: answer, now: 1_700_000_000_000)
        #expect(token.map { $0.expiresAtMilliseconds - 1_700_000_000_000 } == left)
    }

    @Test(arguments: [
        ("plain-id_1.x*", "plain-id_1.x*"), ("a b", "a+b"), ("a:b&c=d", "a%3Ab%26c%3Dd"),
        ("ü+%", "%C3%BC%2B%25"),
    ])
    func `names for a token endpoint are encoded as in forms`(text: String, encoded: String) {
        #expect(TokenEndpoint.formEncoded(text) == encoded)
    }

    private static func token(_ claims: [String: Any]) -> String {
        let payload = try! JSONSerialization.data(withJSONObject: claims)
        let text = payload.base64EncodedString().replacing("+", with: "-")
            .replacing("/", with: "_").replacing("=", with: "")
        return "e30.\(text).c2ln"
    }
}
