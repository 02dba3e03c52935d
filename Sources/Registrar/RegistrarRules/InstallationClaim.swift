// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// Whose an installation is that apps register by themselves: that of the first key which attests itself
/// for it, until the claim ends or is removed with the installation. Whoever knows an installation's
/// identifier would else attest a key of their own for it, and read and write what is another's.
///
/// A claim is a record of the topic like a registration's, without targets, so that it is where the
/// installation is, and its partition's owner decides. Its sequence is the time at which it ends.
package struct InstallationClaim: Hashable, Sendable {
    package var key: InstallationKey
    /// Of the attested key, in base64.
    package var attestedKey: String
    package var until: WallTime

    /// The part of the record's key in a handler's place; no handler is called so.
    package static let handler = "default.attest"

    package init(key: InstallationKey, attestedKey: String, until: WallTime) {
        self.key = key
        self.attestedKey = attestedKey
        self.until = until
    }

    /// As `RegistrationSummary.content`.
    var content: UInt64 {
        Array(attestedKey.utf8).withUnsafeBytes { StableHash.hash64($0, seed: 0) }
    }

    func value(_ sequence: Int64, registeredAt: WallTime) -> [UInt8] {
        var draft = RegistrationDraft(
            environment: key.environment, app: key.app, installation: key.installation,
            handler: Self.handler)
        draft.sequence = sequence
        draft.registeredAt = registeredAt
        draft.attestedKey = attestedKey
        return RegistrationEncoder.value(draft)
    }
}
