// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// Verifies what `DCAppAttestService.attestKey` makes: that a key was made by the Secure Enclave of
/// an Apple device for one app. The numbers are the steps of Apple's page "Validating apps that
/// connect to your server".
struct AttestationVerifier: Sendable {
    let roots: TrustedRoots

    /// What an attestation is compared with.
    struct Expected {
        /// As the app sends it, decoded.
        var keyID: [UInt8]
        /// SHA-256 of what the app had attested.
        var clientDataHash: [UInt8]
        /// `TEAMID.bundle.identifier`
        var appID: String
        var environment: PushEnvironment
    }

    /// - Returns: the key, as a point of P-256 in 65 bytes.
    func key(
        in object: [UInt8], _ expected: Expected, now: WallTime
    ) throws(AttestationFault) -> [UInt8] {
        guard let attestation = CBOR(object), attestation["fmt"] == .text("apple-appattest"),
            let chain = attestation["attStmt"]?["x5c"]?.array,
            let authData = attestation["authData"]?.byteString,
            let data = AuthenticatorData(authData), let credential = data.credential
        else { throw .malformed }
        let leaf = try verifiedLeaf(chain, now)
        // 2 to 4. The nonce ties the certificate to the authenticator data and the challenge.
        let nonce = SHA256Digest.of(authData + expected.clientDataHash)
        guard leaf.extensionValue(oid: Self.nonceOID) == Self.nonceExtension(nonce) else {
            throw .nonce
        }
        // 5. X9.62, uncompressed.
        guard let key = try? ES256PublicKey(of: leaf), let point = key.point,
            SHA256Digest.of(point) == expected.keyID
        else { throw .keyID }
        // 6.
        guard data.rpIDHash == SHA256Digest.of(Array(expected.appID.utf8)) else { throw .appID }
        // 7.
        guard data.counter == 0 else { throw .counter }
        // 8.
        guard credential.aaguid == Self.aaguid(expected.environment) else { throw .environment }
        // 9.
        guard credential.id == expected.keyID else { throw .credentialID }
        return point
    }

    /// 1. The leaf comes first.
    private func verifiedLeaf(
        _ chain: [CBOR], _ now: WallTime
    ) throws(AttestationFault) -> Certificate {
        guard Self.chainLengths.contains(chain.count) else { throw .malformed }
        var certificates: [Certificate] = []
        for value in chain {
            guard let der = value.byteString, let certificate = try? Certificate(der: der) else {
                throw .malformed
            }
            certificates.append(certificate)
        }
        do throws(TLSError) {
            try roots.verify(
                certificates[0], through: Array(certificates.dropFirst()), at: now.seconds)
        } catch { throw .chain(error.verification ?? error.text) }
        return certificates[0]
    }

    /// The leaf and the authority below Apple's root; a third is for Apple to add.
    private static let chainLengths = 2...3
    private static let nonceOID = "1.2.840.113635.100.8.2"

    /// A sequence of an octet string, which is tagged [1].
    static func nonceExtension(_ nonce: [UInt8]) -> [UInt8] {
        assert(nonce.count == SHA256Digest.bytes, "a nonce is a SHA-256 of 32 bytes")
        return DER.sequence([DER.value(tag: 0xA1, DER.octetString(nonce))])
    }

    static func aaguid(_ environment: PushEnvironment) -> [UInt8] {
        switch environment {
        case .production: Array("appattest".utf8) + [UInt8](repeating: 0, count: 7)
        case .development: Array("appattestdevelop".utf8)
        }
    }
}

/// Why an attestation is refused.
enum AttestationFault: Error, Hashable, Sendable {
    case malformed
    /// With OpenSSL's words.
    case chain(String)
    case nonce, keyID, appID, counter, environment, credentialID

    var detail: String {
        switch self {
        case .malformed: "The attestation is not one of App Attest."
        case .chain(let text): "The attestation's certificates are refused: \(text.printable)."
        case .nonce: "The attestation was made for another challenge."
        case .keyID: "The key ID is not that of the attested key."
        case .appID: "The attestation is of another app or team."
        case .counter: "The attestation's counter is not 0."
        case .environment: "The attestation is of App Attest's other environment."
        case .credentialID: "The attestation's credential ID is not the key ID."
        }
    }

    var refusal: AccessRefusal {
        AccessRefusal(
            .attestationRefused, detail,
            remedy: "Make a new key, get a new challenge, and attest the key with it.")
    }
}
