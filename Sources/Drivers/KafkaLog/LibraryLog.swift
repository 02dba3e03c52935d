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
        let secrets =
            properties
            .filter { name, _ in Self.isSecret(name) }
            .flatMap { [$0.value.text] + Self.sharedAccessSecrets(in: $0.value.text) }
            .filter { !$0.isEmpty }
        values = Set(secrets.flatMap(Self.forms))
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

    /// The key in a connection string of Azure's Event Hubs, which is a password as a whole, or the
    /// signature (`SharedAccessSignature sr=…&sig=…`): a text may repeat these alone.
    private static func sharedAccessSecrets(in value: String) -> [String] {
        value.split { $0 == ";" || $0 == "&" || $0.isWhitespace }.flatMap { field in
            ["sharedaccesskey=", "sig="].filter { field.lowercased().hasPrefix($0) }
                .map { String(field.dropFirst($0.count)) }
        }
    }

    /// What base64 has and a URL encodes.
    private static let encoded: KeyValuePairs<String, String> = [
        "+": "%2B", "/": "%2F", "=": "%3D",
    ]

    /// A secret as it is, and as it is in a URL: a signature is written as there, and a text may
    /// repeat it either way.
    private static func forms(of secret: String) -> [String] {
        let plain = encoded.reduce(secret) { text, code in
            text.replacing(code.value, with: code.key)
                .replacing(code.value.lowercased(), with: code.key)
        }
        let inCapitals = encoded.reduce(plain) { $0.replacing($1.key, with: $1.value) }
        let inSmall = encoded.reduce(plain) { $0.replacing($1.key, with: $1.value.lowercased()) }
        return [secret, plain, inCapitals, inSmall]
    }

    func redact(_ text: String) -> String {
        var text = text
        for value in values where text.contains(value.text) {
            text = text.split(separator: value.text, omittingEmptySubsequences: false)
                .joined(separator: "[secret]")
        }
        return withoutCutSecret(text)
    }

    /// So many bytes of a secret at the end of a text are taken for it: fewer may be a word.
    private static let cutMin = 8
    /// How much of a text's end is searched, which is more than librdkafka leaves of one.
    private static let cutMax = 4096

    /// librdkafka cuts long texts, and with them a secret that lies across the cut.
    private func withoutCutSecret(_ text: String) -> String {
        let end = Array(text.utf8.suffix(Self.cutMax))
        let starts = values.compactMap { value in
            end.indices.dropLast(Self.cutMin - 1).first { start in
                value.text.utf8.starts(with: end[start...])
            }
        }
        guard let start = starts.min() else { return text }
        let kept = text.utf8.dropLast(end.count - start)
        return String(decoding: kept, as: UTF8.self) + "[secret]"
    }
}
