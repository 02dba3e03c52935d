// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Simdjson

/// Names a record to another registrar that no path names: an installation's claim, or what others have
/// written under a part of a key that is no handler's name.
package struct KeyPartBody: Hashable, Sendable {
    package var keyPart: String
    /// If it is to be removed, only with a sequence below; nil for any.
    package var below: Int64?
    /// If it is to be removed, only where something is known to be.
    package var isOnlyIfKnown: Bool

    package init(keyPart: String, below: Int64? = nil, isOnlyIfKnown: Bool = false) {
        self.keyPart = keyPart
        self.below = below
        self.isOnlyIfKnown = isOnlyIfKnown
    }

    package init(_ object: JSONObject) throws(InvalidMember) {
        guard let keyPart = SnapshotReader.member(object, "keyPart")?.string else {
            throw InvalidMember(
                "", "it names no record",
                remedy: "replace the registrar that sent it by this version")
        }
        self.keyPart = String(decoding: keyPart, as: UTF8.self)
        below = SnapshotReader.member(object, "below")?.integer.flatMap {
            RegistrationArbiter.sequence($0)
        }
        isOnlyIfKnown = SnapshotReader.member(object, "onlyIfKnown")?.bool ?? false
    }

    package var json: [UInt8] {
        var members = [("keyPart", JSONText.string(keyPart))]
        if let below { members.append(("below", .literal("\(below)"))) }
        if isOnlyIfKnown { members.append(("onlyIfKnown", .literal("true"))) }
        return Array(JSONText.object(members).line.utf8)
    }
}
