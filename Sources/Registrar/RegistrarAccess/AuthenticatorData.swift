// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The authenticator data of WebAuthn (6.1), as App Attest fills it in.
struct AuthenticatorData: Hashable {
    /// SHA-256 of `TEAMID.bundle.identifier`.
    let rpIDHash: [UInt8]
    /// How many assertions the key has made; 0 in an attestation.
    let counter: UInt32
    /// Of an attestation alone: the environment, and the key's identifier. Nil if there are no
    /// bytes for them. The flag that announces them is not looked at, since assertions of Apple's
    /// have it set as well.
    let credential: Credential?

    struct Credential: Hashable {
        let aaguid: [UInt8]
        let id: [UInt8]
    }

    static let bytesMax = 1024

    init?(_ bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard bytes.count <= Self.bytesMax, let hash = reader.bytes(32), reader.byte() != nil,
            let counter = reader.number(bytes: 4)
        else { return nil }
        rpIDHash = hash
        self.counter = UInt32(counter)
        guard !reader.rest.isEmpty else {
            credential = nil
            return
        }
        // The key follows in COSE: the certificate has the same one.
        guard let aaguid = reader.bytes(16), let count = reader.number(bytes: 2),
            let id = reader.bytes(Int(count))
        else { return nil }
        credential = Credential(aaguid: aaguid, id: id)
    }
}
