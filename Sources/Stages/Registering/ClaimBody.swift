// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Simdjson

/// What one registrar tells another of a claim: `{"attestedKey":"…","until":1800000000000}`, or `{}` if it is
/// to be removed. Whose installation it is about is in the path.
package struct ClaimBody: Hashable, Sendable {
    private var term: Term?

    private struct Term: Hashable {
        var attestedKey: String
        var until: WallTime
    }

    /// - Parameter claim: nil to remove it.
    package init(_ claim: InstallationClaim?) {
        term = claim.map { Term(attestedKey: $0.attestedKey, until: $0.until) }
    }

    package init(_ object: JSONObject) throws(InvalidMember) {
        let key = SnapshotReader.member(object, "attestedKey")
        let until = SnapshotReader.member(object, "until")
        if key == nil, until == nil { return }
        guard let key = key?.string, let until = until?.integer,
            RegistrationDesk.sequence(until) != nil
        else {
            throw InvalidMember(
                "", "it is no claim", remedy: "replace the registrar that sent it by this version")
        }
        term = Term(
            attestedKey: String(decoding: key, as: UTF8.self),
            until: WallTime(milliseconds: until))
    }

    package func claim(of key: InstallationKey) -> InstallationClaim? {
        term.map { InstallationClaim(key: key, attestedKey: $0.attestedKey, until: $0.until) }
    }

    package var json: [UInt8] {
        guard let term else { return Array("{}".utf8) }
        let until = term.until.milliseconds
        return Array(#"{"attestedKey":"\#(term.attestedKey)","until":\#(until)}"#.utf8)
    }
}
