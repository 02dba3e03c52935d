// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel
internal import Rdkafka

/// Writes librdkafka's log lines to the worker's log, without the configuration's secrets.
enum LibraryLog {
    static func sink(_ logger: Logger, secrets: SecretFilter) -> Client.LogSink {
        { severity, facility, text in
            logger.log(
                level: level(severity: severity, facility: facility),
                "\(secrets.redact(text))", metadata: ["facility": "\(facility)"],
                source: "librdkafka")
        }
    }

    /// - Parameter severity: a syslog severity, from 0 (emergency) to 7 (debug).
    static func level(severity: Int32, facility: String) -> Logger.Level {
        // Consumers and producers get the same properties, and each warns about the other's.
        if facility == "CONFWARN" { return .debug }
        // The embedded Kafka causes this at every metadata request; nothing can be done about it.
        if facility == "AUTOCREATE" { return .debug }
        switch severity {
        case ...2: return .critical
        case 3: return .error
        case 4: return .warning
        case 5: return .notice
        case 6: return .info
        default: return .debug
        }
    }
}

/// Replaces the values of secret properties wherever they occur in a text.
struct SecretFilter: Sendable {
    private let values: [Secret]

    init(properties: [String: Secret]) {
        values =
            properties
            .filter { name, _ in Self.isSecret(name) }
            .flatMap { [$0.value.text] + Self.sharedAccessKeys(in: $0.value.text) }
            .filter { !$0.isEmpty }
            .map { Secret($0) }
            // The longest come first, so that no part of one is left after replacing a shorter one.
            .sorted { $0.text.utf8.count > $1.text.utf8.count }
    }

    /// Whether a property of this name holds a secret: `sasl.password`, `ssl.key.pem`,
    /// `ssl.key.password`, `ssl.keystore.password`, `sasl.oauthbearer.client.secret`,
    /// `sasl.oauthbearer.config`.
    static func isSecret(_ property: String) -> Bool {
        ["password", "secret", "key.pem", "oauthbearer.config"].contains(where: property.contains)
    }

    /// The key in a connection string of Azure's Event Hubs, which is a password as a whole: a text
    /// may repeat the key alone.
    private static func sharedAccessKeys(in value: String) -> [String] {
        let name = "sharedaccesskey="
        return value.split(separator: ";").filter { $0.lowercased().hasPrefix(name) }
            .map { String($0.dropFirst(name.count)) }
    }

    func redact(_ text: String) -> String {
        var text = text
        for value in values where text.contains(value.text) {
            text = text.split(separator: value.text, omittingEmptySubsequences: false)
                .joined(separator: "[secret]")
        }
        return text
    }
}
