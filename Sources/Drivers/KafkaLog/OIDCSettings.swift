// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel
internal import Rdkafka

/// The settings of a token endpoint for OAuth 2.0 client credentials (RFC 6749, section 4.4), under
/// librdkafka's property names. A librdkafka built without libcurl, such as Debian's, refuses these
/// properties, so they are not passed on to it but handled here.
struct OIDCSettings: Sendable, Equatable {
    var endpoint: String
    var clientID: String
    var clientSecret: Secret
    /// The scope to request: names separated by spaces.
    var scope: String?
    var extensions: [BearerToken.Extension]
    /// The PEM file of the roots that verify the endpoint's certificate; nil for the system's.
    var caFile: String?

    enum Property: String, CaseIterable {
        case method = "sasl.oauthbearer.method"
        case endpoint = "sasl.oauthbearer.token.endpoint.url"
        case clientID = "sasl.oauthbearer.client.id"
        case clientSecret = "sasl.oauthbearer.client.secret"
        case scope = "sasl.oauthbearer.scope"
        case extensions = "sasl.oauthbearer.extensions"
        case caFile = "https.ca.location"
    }

    /// Reads the settings from the properties; nil if these configure no token endpoint.
    init?(_ properties: [String: String]) throws(KafkaError) {
        let mechanism = properties["sasl.mechanisms"] ?? properties["sasl.mechanism"]
        let method = properties[Property.method.rawValue]
        if let method { try Property.method.check(method) }
        guard method?.lowercased() == "oidc" else {
            try Self.requireNone(of: properties, mechanism: mechanism)
            return nil
        }
        try Self.requireSASL(properties, mechanism: mechanism)
        for property in Property.allCases {
            if let value = properties[property.rawValue] { try property.check(value) }
        }
        endpoint = try Self.value(of: .endpoint, in: properties, "where tokens are asked for")
        clientID = try Self.value(of: .clientID, in: properties, "whom the endpoint knows")
        clientSecret = Secret(
            try Self.value(
                of: .clientSecret, in: properties,
                "best as LAMPLIGHTER_KAFKA_PROPERTIES_SASL_OAUTHBEARER_CLIENT_SECRET"))
        scope = properties[Property.scope.rawValue]
        extensions = Self.extensions(properties[Property.extensions.rawValue] ?? "") ?? []
        caFile = properties[Property.caFile.rawValue]
    }

    /// The properties without those handled here, for librdkafka.
    static func without(_ properties: [String: String]) -> [String: String] {
        properties.filter { Property(rawValue: $0.key) == nil }
    }

    // MARK: Rules over several properties

    private static let unsecured = "enable.sasl.oauthbearer.unsecure.jwt"

    /// Throws if properties of a token endpoint are set without the method `oidc`, or if
    /// OAUTHBEARER would use librdkafka's `default` method, which makes unsigned tokens.
    private static func requireNone(
        of properties: [String: String], mechanism: String?
    ) throws(KafkaError) {
        for property in Property.allCases where property != .method {
            if properties[property.rawValue] != nil {
                throw .refusedProperty(
                    property.rawValue, reason: "it needs \(Property.method.rawValue): oidc")
            }
        }
        let isUnsecured = ["true", "t", "1"].contains(properties[unsecured]?.lowercased())
        if mechanism == "OAUTHBEARER", !isUnsecured {
            throw .missingProperty(
                Property.method.rawValue,
                remedy: "set it to oidc; for a Kafka that verifies no token, set \(unsecured)")
        }
    }

    private static func requireSASL(
        _ properties: [String: String], mechanism: String?
    ) throws(KafkaError) {
        let reason: String
        if mechanism != "OAUTHBEARER" {
            reason = "oidc needs sasl.mechanisms: OAUTHBEARER"
        } else if properties["security.protocol"]?.lowercased().hasPrefix("sasl_") != true {
            reason = "oidc needs security.protocol: SASL_SSL"
        } else if properties[unsecured] != nil {
            reason = "oidc and \(unsecured) exclude each other"
        } else {
            return
        }
        throw .refusedProperty(Property.method.rawValue, reason: reason)
    }

    private static func value(
        of property: Property, in properties: [String: String], _ remedy: String
    ) throws(KafkaError) -> String {
        guard let value = properties[property.rawValue], !value.isEmpty else {
            throw .missingProperty(property.rawValue, remedy: "set it: \(remedy)")
        }
        return value
    }

    /// Parses name=value pairs; nil for text of another form.
    fileprivate static func extensions(_ text: String) -> [BearerToken.Extension]? {
        var extensions: [BearerToken.Extension] = []
        for pair in text.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = pair.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, parts[0] != "auth",
                parts[0].utf8.allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) }),
                parts[1].utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { return nil }
            extensions.append(
                BearerToken.Extension(name: String(parts[0]), value: String(parts[1])))
        }
        return extensions
    }
}

extension OIDCSettings.Property {
    /// Throws if the value is invalid whatever the other properties are.
    func check(_ value: String) throws(KafkaError) {
        let wrong: String? =
            switch self {
            case .method: ["oidc", "default"].contains(value.lowercased()) ? nil : "must be oidc"
            case .endpoint: Self.complaint(ofEndpoint: value)
            case .extensions:
                OIDCSettings.extensions(value) == nil
                    ? "must be name=value pairs joined by commas; names are letters" : nil
            // RFC 6749, section 3.3: printable ASCII names separated by spaces.
            case .scope:
                value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
                    ? nil : "must be names with spaces between them"
            case .clientID, .clientSecret, .caFile: nil
            }
        if let wrong { throw .invalidProperty(rawValue, message: wrong) }
    }

    /// What is wrong with the endpoint's URL; nil if nothing is. The client's secret is sent there,
    /// so plain HTTP is allowed to this machine only.
    private static func complaint(ofEndpoint text: String) -> String? {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let url = URLComponents(string: text), let host = url.host, !host.isEmpty,
            url.fragment == nil
        else { return "must be an https:// URL" }
        if url.user != nil || url.password != nil {
            return "must name no user and no password: that is what client.id and client.secret "
                + "are for"
        }
        let isLoopback =
            ["localhost", "::1", "[::1]"].contains(host)
            || host.wholeMatch(of: /127\.[0-9]+\.[0-9]+\.[0-9]+/) != nil
        switch url.scheme {
        case "https": return nil
        case "http" where isLoopback: return nil
        case "http":
            return "must be https://, or the client's secret travels in the clear; http:// is for "
                + "the loopback interface alone"
        default: return "must be an https:// URL"
        }
    }
}
