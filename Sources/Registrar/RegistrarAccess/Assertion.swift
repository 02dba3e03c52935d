// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// What `DCAppAttestService.generateAssertion` makes for one request.
struct Assertion: Sendable {
    private let signature: [UInt8]
    private let authenticatorData: [UInt8]
    private let data: AuthenticatorData

    /// An assertion has some 150 bytes.
    static let bytesMax = 2048

    /// How many assertions the key had made, this one included.
    var counter: UInt32 { data.counter }

    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax, let assertion = CBOR(bytes),
            let signature = assertion["signature"]?.byteString,
            let authenticatorData = assertion["authenticatorData"]?.byteString,
            let data = AuthenticatorData(authenticatorData)
        else { return nil }
        self.signature = signature
        self.authenticatorData = authenticatorData
        self.data = data
    }

    /// Verifies all but the counter's order, in the steps of Apple's page "Validating apps that
    /// connect to your server".
    /// - Parameters:
    ///   - key: a point of P-256 in 65 bytes.
    ///   - appID: `TEAMID.bundle.identifier`
    func verify(key: [UInt8], clientDataHash: [UInt8], appID: String) throws(AssertionFault) {
        guard let key = try? ES256PublicKey(point: key) else { throw .signature }
        // Apple signs the nonce as a message: it is hashed once more.
        let nonce = SHA256Digest.of(authenticatorData + clientDataHash)
        guard key.verify(nonce, der: signature) else { throw .signature }
        guard data.rpIDHash == SHA256Digest.of(Array(appID.utf8)) else { throw .appID }
        guard data.counter > 0 else { throw .counter }
    }

    /// SHA-256 of what an app has asserted about a request: its method, its path with the query, and its
    /// date as they are sent, and the SHA-256 of its body in lower-case hexadecimal, a line each.
    static func clientDataHash(
        method: String, target: String, date: String, body: [UInt8]
    ) -> [UInt8] {
        let digest = Hexadecimal.encode(SHA256Digest.of(body))
        return SHA256Digest.of(Array("\(method)\n\(target)\n\(date)\n\(digest)".utf8))
    }
}

/// Why an assertion is refused.
enum AssertionFault: Error, Hashable, Sendable, CaseIterable {
    case malformed, signature, appID, counter, date, replayed

    private var detail: String {
        switch self {
        case .malformed: "The assertion is not one of App Attest in base64."
        case .signature: "The assertion is not of the attested key, or of another request."
        case .appID: "The assertion is of another app or team."
        case .counter: "The assertion's counter is 0."
        case .date: "The date is not RFC 3339, or not within 5 minutes of the registrar's clock."
        case .replayed: "A newer request of this key for the same path has been accepted."
        }
    }

    var refusal: AccessRefusal {
        AccessRefusal(
            self == .date || self == .replayed ? .assertionOutdated : .assertionRefused, detail,
            remedy: self == .date
                ? "Correct the device's clock by the answer's date header, and assert again."
                : "Make a new assertion over method, path with query, date and body as they are sent."
        )
    }
}
