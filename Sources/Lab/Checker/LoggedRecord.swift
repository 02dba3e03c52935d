// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Foundation

/// A record of a table or letter topic, from Kafka or from a line `{"t":ms,"key":…,"value":…}`.
package struct LoggedRecord {
    /// The record's timestamp, in milliseconds since 1970.
    package var t: Int64
    package var key: String
    /// The value; nil for a tombstone.
    package var value: Data?

    package init(t: Int64, key: String, value: Data?) {
        self.t = t
        self.key = key
        self.value = value
    }

    /// Parses a line. The member `value` is the record's text, or the JSON object that the text
    /// contains.
    init(_ line: Span<UInt8>) throws(LineProblem) {
        let object = try JSONMembers(line)
        t = try object.required("t")
        key = object.text("key") ?? ""
        guard object.has("value") else { return }
        guard let value = object.data("value") else { throw .missing("value") }
        self.value = value
    }

    /// The members of the value; nil if the record is unreadable by the contract.
    var members: JSONMembers? {
        guard let value, let members = try? JSONMembers(data: value), members.integer("v") == 1
        else { return nil }
        return members
    }
}
