// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Rdkafka
import Testing

@testable import KafkaLog

@Suite struct `Settings for tokens of an endpoint` {
    private static let whole = [
        "security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
        "sasl.oauthbearer.client.id": "lamplighter",
        "sasl.oauthbearer.client.secret": "hunter2",
    ]

    private static func error(_ properties: [String: String]) -> String? {
        do throws(KafkaError) {
            try KafkaClientSettings(bootstrap: "kafka:9092", group: "fleet", properties: properties)
                .validate()
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `librdkafka is given the mechanism, and nothing of the endpoint`() throws {
        var properties = Self.whole
        properties["https.ca.location"] = "ca.pem"
        properties["sasl.oauthbearer.scope"] = "kafka"
        properties["sasl.oauthbearer.extensions"] = "logicalCluster=lkc-1,poolID=a=b"
        let settings = KafkaClientSettings(
            bootstrap: "kafka:9092", group: "fleet", properties: properties)
        try settings.validate()
        let configuration = try settings.configuration(for: .events)
        #expect(configuration.value(of: "sasl.mechanisms") == "OAUTHBEARER")
        #expect(configuration.value(of: "security.protocol") == "sasl_ssl")
        #expect(
            OIDCSettings.without(properties).keys.sorted()
                == ["sasl.mechanisms", "security.protocol"])
        let parsed = try #require(try OIDCSettings(properties))
        #expect(parsed.extensions.map(\.value) == ["lkc-1", "a=b"])
    }

    @Test func `copies of settings share their tokens`() {
        let settings = KafkaClientSettings(
            bootstrap: "kafka:9092", group: "fleet", properties: Self.whole)
        var copy = settings
        copy.group = "other"
        #expect(settings.tokens != nil)
        #expect(copy.tokens === settings.tokens)
    }

    @Test(
        arguments: [
            (
                ["sasl.oauthbearer.token.endpoint.url": nil],
                "'sasl.oauthbearer.token.endpoint.url' is"
            ),
            (["sasl.oauthbearer.client.id": nil], "'sasl.oauthbearer.client.id' is missing"),
            (
                ["sasl.oauthbearer.client.secret": nil],
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_OAUTHBEARER_CLIENT_SECRET"
            ),
            (["sasl.oauthbearer.client.secret": ""], "'sasl.oauthbearer.client.secret' is missing"),
            (["sasl.mechanisms": "PLAIN"], "oidc needs sasl.mechanisms: OAUTHBEARER"),
            (["sasl.mechanisms": nil], "oidc needs sasl.mechanisms: OAUTHBEARER"),
            (["security.protocol": nil], "oidc needs security.protocol: SASL_SSL"),
            (["security.protocol": "ssl"], "oidc needs security.protocol: SASL_SSL"),
            (["enable.sasl.oauthbearer.unsecure.jwt": "true"], "exclude each other"),
            (["sasl.oauthbearer.method": nil], "needs sasl.oauthbearer.method: oidc"),
            (["sasl.oauthbearer.method": "default"], "needs sasl.oauthbearer.method: oidc"),
            (["sasl.oauthbearer.method": "azure"], "'sasl.oauthbearer.method'"),
        ] as [([String: String?], String)])
    func `what is incomplete or at odds is an error that names the property`(
        changes: [String: String?], text: String
    ) {
        var properties = Self.whole
        for (name, value) in changes { properties[name] = value }
        let error = Self.error(properties)
        #expect(error?.contains(text) == true, "\(error ?? "no error")")
        #expect(error?.contains("hunter2") != true)
    }

    @Test func `a mechanism without a way to tokens is an error`() {
        let bare = ["security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"]
        for method in [nil, "default"] {
            var properties = bare
            properties["sasl.oauthbearer.method"] = method
            let error = Self.error(properties)
            #expect(error?.contains("'sasl.oauthbearer.method' is missing: set it to oidc") == true)
        }
        var unsecured = bare
        unsecured["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        unsecured["sasl.oauthbearer.config"] = "principal=dev"
        #expect(Self.error(unsecured) == nil)
    }

    @Test(arguments: [
        ("https://id.example.com/realms/x/token", true),
        ("https://id.example.com:8443/t?a=b", true),
        ("http://localhost:8080/token", true), ("http://127.0.0.1/token", true),
        ("http://[::1]:8080/token", true), ("http://id.example.com/token", false),
        ("http://127.0.0.1.example.com/token", false), ("http://localhost.example.com", false),
        ("https://user:secret@id.example.com/token", false), ("ftp://id.example.com", false),
        ("https:///token", false), ("id.example.com", false), ("https://id example.com", false),
        ("https://id.example.com/#here", false),
    ])
    func `the secret goes to https, and in the clear to this machine alone`(
        url: String, isAllowed: Bool
    ) {
        var properties = Self.whole
        properties["sasl.oauthbearer.token.endpoint.url"] = url
        #expect((Self.error(properties) == nil) == isAllowed)
    }

    @Test(arguments: [
        ("a=b", true), ("a=b,c=", true), ("a=b,,c=d", false), ("a", false), ("=b", false),
        ("auth=x", false), ("a1=b", false), ("a=\u{1}", false), ("ä=b", false),
    ])
    func `extensions are pairs as RFC 7628 has them`(text: String, isAllowed: Bool) {
        var properties = Self.whole
        properties["sasl.oauthbearer.extensions"] = text
        #expect((Self.error(properties) == nil) == isAllowed)
    }
}
