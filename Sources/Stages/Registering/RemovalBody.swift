// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Simdjson

/// What one registrar tells another of a handler that it is to remove, where no path names it: others may
/// have written a record under any part of a key.
package struct RemovalBody: Hashable, Sendable {
    package var keyPart: String
    package var below: Int64?

    package init(keyPart: String, below: Int64?) {
        self.keyPart = keyPart
        self.below = below
    }

    package init(_ object: JSONObject) throws(InvalidMember) {
        guard let keyPart = SnapshotReader.member(object, "keyPart")?.string else {
            throw InvalidMember(
                "", "it names no handler",
                remedy: "replace the registrar that sent it by this version")
        }
        self.keyPart = String(decoding: keyPart, as: UTF8.self)
        below = SnapshotReader.member(object, "below")?.integer.flatMap {
            RegistrationDesk.sequence($0)
        }
    }

    package var json: [UInt8] {
        var members = [("keyPart", JSONText.string(keyPart))]
        if let below { members.append(("below", .literal("\(below)"))) }
        return Array(JSONText.object(members).line.utf8)
    }
}
