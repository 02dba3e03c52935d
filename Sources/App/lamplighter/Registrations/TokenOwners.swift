// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
import PushModel
import RegistrarRules
import Worker

/// The installations that have some tokens.
struct TokenOwners: Sendable {
    /// `environment/app/installation`.
    private let owners: Set<String>

    init(
        of tokens: Set<TokenName>, _ configuration: Configuration, _ scope: RegistrationScope
    ) throws {
        var owners: Set<String> = []
        let everything = RegistrationFilter.Matcher(
            scope: scope, tokenClass: nil, subject: nil, token: nil, since: nil, before: nil,
            isImported: false)
        try RegistrationListing(configuration).forEach(everything) { target in
            guard tokens.contains(TokenName(target.token)) else { return }
            owners.insert(Self.name(of: target.head.key))
        }
        self.owners = owners
    }

    private static func name(of key: InstallationKey) -> String {
        "\(key.environment.name)/\(key.app)/\(key.installation)"
    }

    /// Whether the record of this key is of one of them.
    @Sendable func have(_ key: [UInt8]) -> Bool {
        key.withUnsafeBytes { InstallationKey.read(recordKey: $0) }
            .map { owners.contains(Self.name(of: $0.key)) } ?? false
    }
}
