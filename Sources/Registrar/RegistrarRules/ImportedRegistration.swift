// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How the registrations are called that `lamplighter registrations import` writes. Each has a handler of
/// its class that no app may name, so that it is never written over what a phone has registered; and it
/// ends when the installation registers something of that class itself, or removes it.
///
/// A sender that does not know the app's own identifier of an installation knows its token. Such an
/// import is of an installation that is called after the token, so that whoever registers the token
/// finds it.
package enum ImportedRegistration {
    private static let prefix = "imported."
    private static let tokenPrefix = "token-"

    /// The part of the record's key in the handler's place.
    package static func handler(of tokenClass: TokenClass) -> String { prefix + tokenClass.name }

    /// Whether no app may call a handler so.
    package static func isHandler(_ keyPart: String) -> Bool { keyPart.hasPrefix(prefix) }

    /// The class of an import's handler; nil for any other.
    package static func tokenClass(ofHandler keyPart: String) -> TokenClass? {
        guard isHandler(keyPart) else { return nil }
        return TokenClass(name: String(keyPart.dropFirst(prefix.count)))
    }

    /// The installation of a token of which nothing else is known.
    ///
    /// - Parameter digest: SHA-256 of the token.
    package static func installation(ofTokenDigest digest: [UInt8]) -> String {
        tokenPrefix + Hexadecimal.encode(digest.prefix(16))
    }
}
