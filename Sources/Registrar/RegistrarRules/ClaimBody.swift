// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Simdjson

/// A claim as one registrar passes it on to another: `{"attestedKey":"…","until":1800000000000}`. Whose
/// installation it is about is in the path.
package struct ClaimBody: Hashable, Sendable {
    private let attestedKey: String
    private let until: WallTime

    package init(_ claim: InstallationClaim) {
        (attestedKey, until) = (claim.attestedKey, claim.until)
    }

    package init(_ object: JSONObject) throws(InvalidMember) {
        guard let key = SnapshotReader.member(object, "attestedKey")?.string,
            let until = SnapshotReader.member(object, "until")?.integer,
            RegistrationArbiter.sequence(until) != nil
        else {
            throw InvalidMember(
                "", "it is no claim", remedy: "replace the registrar that sent it by this version")
        }
        attestedKey = String(decoding: key, as: UTF8.self)
        self.until = WallTime(milliseconds: until)
    }

    package func claim(of key: InstallationKey) -> InstallationClaim {
        InstallationClaim(key: key, attestedKey: attestedKey, until: until)
    }

    package var json: [UInt8] {
        Array(#"{"attestedKey":"\#(attestedKey)","until":\#(until.milliseconds)}"#.utf8)
    }
}
