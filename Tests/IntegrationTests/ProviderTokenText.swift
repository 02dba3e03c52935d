// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import OpenSSL

/// A provider token (RFC 7519), taken from the `authorization` header.
struct ProviderTokenText {
    let header: [String: String]
    let issuer: String?
    private let claimNames: Set<String>
    private let signed: String
    private let signature: [UInt8]

    init?(_ authorization: String?) {
        guard let authorization, authorization.hasPrefix("bearer ") else { return nil }
        let parts = authorization.dropFirst("bearer ".count).split(separator: ".").map(String.init)
        guard parts.count == 3, let head = Self.decode(parts[0]), let body = Self.decode(parts[1]),
            let signature = Self.decode(parts[2]),
            let header = try? JSONDecoder().decode([String: String].self, from: head),
            let claims = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        else { return nil }
        self.header = header
        self.signature = Array(signature)
        issuer = claims["iss"] as? String
        claimNames = Set(claims.keys)
        signed = "\(parts[0]).\(parts[1])"
    }

    /// Apple's two claims and no more, and 64 raw bytes of signature, as JOSE has it.
    func isSigned(by team: SigningTeam) -> Bool {
        guard let key = try? ES256PublicKey(pem: team.publicPEM) else { return false }
        return claimNames == ["iss", "iat"] && signature.count == 64
            && key.verify(signed.utf8, signature: signature)
    }

    private static func decode(_ text: String) -> Data? {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - text.count % 4) % 4)
        return Data(base64Encoded: standard + padding)
    }
}
