// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Simdjson

/// The body of `POST …/attest`. Its members are checked by those who know App Attest.
package struct AttestationBody: Hashable, Sendable {
    package let keyID: String
    package let attestation: String
    package let challenge: String

    package init(_ object: JSONObject) throws(InvalidMember) {
        try RepeatedMember.check(within: object.value, at: "")
        keyID = try Self.text(object, "keyID")
        attestation = try Self.text(object, "attestation")
        challenge = try Self.text(object, "challenge")
    }

    private static func text(
        _ object: JSONObject, _ name: StaticString
    ) throws(InvalidMember) -> String {
        guard let text = SnapshotReader.member(object, name)?.string else {
            throw InvalidMember(
                "/\(name)", "\(name) is not a string",
                remedy: "send keyID, attestation and challenge as strings")
        }
        return String(decoding: text, as: UTF8.self)
    }
}
