// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
internal import FoundationEssentials
package import PushModel

/// Why a credential's key cannot be used. It names the credential and never quotes the key.
package struct SigningKeyError: Error, CustomStringConvertible {
    package let credential: String
    package let reason: String

    package var description: String { "apns.credentials.\(credential): \(reason)" }
}

/// The provider tokens of every credential, in each of its environments. `KeyFollower` changes
/// their keys while the worker runs.
package struct SigningKeys: Sendable {
    struct Credential: Sendable {
        let team: String
        let source: KeySource
        /// The keys found at the start. The first is the one in use.
        let found: [KeySource.KeyText]
        let newer: Set<KeySource.KeyText>
        let key: SigningKey
        let tokens: [PushEnvironment: ProviderTokens]
    }

    private(set) var credentials: [String: Credential] = [:]

    /// Reads the keys of all credentials.
    ///
    /// - Throws: an error for the first credential whose key is missing or unusable.
    package init(_ configuration: Configuration.APNS) throws(SigningKeyError) {
        for (name, credential) in configuration.credentials.sorted(by: { $0.key < $1.key }) {
            let source = KeySource(credential)
            let look = source.look()
            guard let first = look.keys.first, !look.newer.contains(first) else {
                throw SigningKeyError(
                    credential: name, reason: look.problems.first ?? "there is no key")
            }
            let key: SigningKey
            do {
                key = try first.key(team: credential.team)
            } catch {
                throw SigningKeyError(
                    credential: name, reason: "\(first.origin): \(error)")
            }
            let tokens = credential.environments.map { ($0, ProviderTokens(key)) }
            credentials[name] = Credential(
                team: credential.team, source: source, found: look.keys, newer: look.newer,
                key: key, tokens: Dictionary(tokens) { first, _ in first })
        }
    }

    package subscript(credential: String, environment: PushEnvironment) -> ProviderTokens {
        credentials[credential]!.tokens[environment]!
    }
}
