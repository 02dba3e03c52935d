// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import PushModel
import Testing
import Worker

@testable import Configuration

/// `sasl.oauthbearer.method: oidc` and what goes with it.
@Suite struct `Configuration of Kafka's tokens` {
    private static let secret = "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_OAUTHBEARER_CLIENT_SECRET"

    private static func yaml(_ lines: String...) -> String {
        let common = [
            "security.protocol: SASL_SSL", "sasl.mechanisms: OAUTHBEARER",
            "sasl.oauthbearer.method: oidc",
        ]
        return "kafka:\n  properties:\n"
            + (common + lines).map { "    \($0)\n" }.joined()
    }

    private static let endpoint =
        "sasl.oauthbearer.token.endpoint.url: https://id.example.com/token"
    private static let client = "sasl.oauthbearer.client.id: lamplighter"

    @Test func `a whole configuration of tokens is good, and its secret is not shown`() throws {
        let read = try configuration(
            Self.yaml(Self.endpoint, Self.client, "https.ca.location: /etc/ssl/id-ca.pem"),
            [Self.secret: "hunter2"])
        #expect(read.kafka.properties["sasl.oauthbearer.client.secret"]?.text == "hunter2")
        #expect(!read.description.contains("hunter2"))
        #expect(
            read.description.contains(
                "kafka.properties[sasl.oauthbearer.client.id]: lamplighter"))
        try read.kafka.clientSettings.validate()
    }

    @Test func `what tokens lack is named, with the variable that a secret belongs in`() {
        #expect(
            problems(in: Self.yaml(Self.endpoint, Self.client)) == [
                "kafka.properties[sasl.oauthbearer.client.secret]: is missing; set it: best as "
                    + Self.secret
            ])
        #expect(
            problems(in: Self.yaml(Self.client), [Self.secret: "hunter2"]) == [
                "kafka.properties[sasl.oauthbearer.token.endpoint.url]: is missing; set it: where "
                    + "tokens are asked for"
            ])
        #expect(
            problems(in: Self.yaml(Self.endpoint), [Self.secret: "hunter2"]) == [
                "kafka.properties[sasl.oauthbearer.client.id]: is missing; set it: whom the "
                    + "endpoint knows"
            ])
    }

    @Test func `an endpoint that would hear the secret in the clear is refused`() {
        let found = problems(
            in: Self.yaml(
                "sasl.oauthbearer.token.endpoint.url: http://id.example.com/token", Self.client),
            [Self.secret: "hunter2"])
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix(
                "kafka.properties[sasl.oauthbearer.token.endpoint.url]: is refused; must "
                    + "be https://") == true, "\(found)")
    }

    @Test func `a mechanism without a method is refused, unless for development`() {
        let mechanism =
            "kafka: {properties: {security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER"
        let found = problems(in: mechanism + "}}")
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix(
                "kafka.properties[sasl.oauthbearer.method]: is missing; set it to oidc") == true,
            "\(found)")
        #expect(problems(in: mechanism + ", enable.sasl.oauthbearer.unsecure.jwt: true}}") == [])
    }
}
