// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a worker tells the next owner of a partition, in the metadata of its commits: every event
/// below `endedOffset` has ended for each token whose registration stands below `registrations`.
///
/// It is a fact that does not become untrue, whoever reads it and however late. The committed
/// offset does not depend on it: nothing below that is owed to anybody. A reader that knows nothing
/// of the note starts there and pushes the events of the last grace period again.
package struct CommitNote: Hashable, Sendable {
    package var endedOffset: Int64
    /// By partition of the registrations topic: the offset of the next record to be applied.
    package var registrations: [Int64]

    /// The broker's `offset.metadata.max.bytes`, by default.
    static let textBytesMax = 4096
    private static let version = "v1"

    package init(endedOffset: Int64, registrations: [Int64]) {
        precondition(
            endedOffset >= 0 && registrations.allSatisfy { $0 >= 0 }, "an offset below zero")
        self.endedOffset = endedOffset
        self.registrations = registrations
    }

    /// `v1 ENDED NEXT,NEXT,…`: ASCII, since a broker does not keep other bytes as they are. Nil if
    /// a broker would not take it.
    package var text: String? {
        let cursor = registrations.map(String.init).joined(separator: ",")
        let text = "\(Self.version) \(endedOffset) \(cursor)"
        return text.utf8.count <= Self.textBytesMax ? text : nil
    }

    /// Nil for a text that this version does not write.
    package init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == Self.version, let ended = Self.offset(parts[1]) else {
            return nil
        }
        let numbers =
            parts[2].isEmpty
            ? []
            : parts[2].split(
                separator: ",", omittingEmptySubsequences: false)
        let cursor = numbers.compactMap(Self.offset)
        guard cursor.count == numbers.count else { return nil }
        self.init(endedOffset: ended, registrations: cursor)
    }

    private static func offset(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}
