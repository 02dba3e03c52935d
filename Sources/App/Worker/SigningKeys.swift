// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
internal import FoundationEssentials
package import Logging
internal import PushModel

/// Why a credential's key cannot be used; named by the credential, never quoting the key.
package struct SigningKeyError: Error, CustomStringConvertible {
    package let credential: String
    package let reason: String

    package var description: String { "apns.credentials.\(credential): \(reason)" }
}

/// The provider tokens of every credential. A key file that is replaced is picked up live.
package struct SigningKeys: Sendable {
    private var tokens: [String: ProviderTokens] = [:]
    private var files: [String: String] = [:]

    /// - Throws: at the first credential whose key is missing or unusable.
    package init(_ configuration: Configuration.APNS) throws(SigningKeyError) {
        for (name, credential) in configuration.credentials.sorted(by: { $0.key < $1.key }) {
            let pem = try Self.read(credential, name: name)
            do {
                tokens[name] = try ProviderTokens(
                    teamID: credential.team, keyID: credential.keyID, pem: pem)
            } catch {
                throw SigningKeyError(credential: name, reason: "\(error)")
            }
            files[name] = credential.keyFile
        }
    }

    package subscript(credential: String) -> ProviderTokens { tokens[credential]! }

    /// Looks at the key files every few seconds until the task is cancelled; a file that has changed
    /// is taken over if it is a key, and named in the log if it is not.
    package func followFiles(every interval: Duration, logger: Logger) async {
        var known = files.mapValues { Self.text(of: $0) }
        while (try? await Task.sleep(for: interval)) != nil {
            for (name, file) in files {
                guard let text = Self.text(of: file), text != known[name] else { continue }
                known[name] = text
                do {
                    try tokens[name]!.replaceKey(pem: text)
                    logger.notice("a signing key was replaced", metadata: ["credential": "\(name)"])
                } catch {
                    logger.error(
                        "a replaced signing key is unusable; the one before stays: \(error)",
                        metadata: ["credential": "\(name)"])
                }
            }
        }
    }

    private static func read(
        _ credential: Configuration.APNS.Credential, name: String
    ) throws(SigningKeyError) -> String {
        if let key = credential.key { return key.text }
        guard let file = credential.keyFile, let text = text(of: file) else {
            throw SigningKeyError(
                credential: name,
                reason: "the key file cannot be read: check keyFile and its permissions")
        }
        return text
    }

    /// A .p8 file is a few hundred bytes; more than this is something else.
    private static let keyBytesMax = 64 << 10

    private static func text(of file: String) -> String? {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: file)),
            data.count <= keyBytesMax
        else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}
