// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Planning

/// What a worker tells the next owner of a partition, in the metadata of its commits: every event
/// below `endedOffset` has ended for each token whose registration stands below `registrations`.
///
/// Of events above that are spread over time it may say how far they have come: such an event has ended
/// for each of those tokens whose hash is before its part.
///
/// It is a fact that does not become untrue, whoever reads it and however late. The committed
/// offset does not depend on it: nothing below that is owed to anybody. A reader that knows nothing
/// of the note starts there and pushes the events of the last grace period again.
package struct CommitNote: Hashable, Sendable {
    package var endedOffset: Int64
    /// By partition of the registrations topic: the offset of the next record to be applied.
    package var registrations: [Int64]
    /// Of events from `endedOffset` on, by offset.
    package var spread: [SpreadEvent] = []

    package struct SpreadEvent: Hashable, Sendable {
        package var offset: Int64
        package var progress: FanOutProgress

        package init(offset: Int64, progress: FanOutProgress) {
            self.offset = offset
            self.progress = progress
        }
    }

    /// One past the last offset that it says something of.
    package var end: Int64 { max(endedOffset, (spread.last?.offset ?? -1) + 1) }

    /// The broker's `offset.metadata.max.bytes`, by default.
    static let textBytesMax = 4096
    private static let version = "v1"

    package init(endedOffset: Int64, registrations: [Int64]) {
        precondition(
            endedOffset >= 0 && registrations.allSatisfy { $0 >= 0 }, "offsets are at least 0")
        self.endedOffset = endedOffset
        self.registrations = registrations
    }

    /// `v1 CLUSTER ENDED NEXT,NEXT,…`, and with spread events ` OFFSET:INDEX/COUNT,…` after it: ASCII, since
    /// a broker does not keep other bytes as they are. The release before does not read a note with
    /// these, and sends all of it again. Nil if a broker would not take it; they are left out first.
    ///
    /// - Parameter cluster: the cluster's ID. What copies a group's offsets to another cluster copies
    ///   their metadata too, whose offsets would be of other records there.
    package func text(cluster: String) -> String? {
        let cursor = registrations.map(String.init).joined(separator: ",")
        let text = "\(Self.version) \(cluster) \(endedOffset) \(cursor)"
        let spread = spread.map { "\($0.offset):\($0.progress.index)/\($0.progress.count)" }
        let whole = spread.isEmpty ? text : "\(text) \(spread.joined(separator: ","))"
        return [whole, text].first { $0.utf8.count <= Self.textBytesMax }
    }

    /// Nil for a text that this version does not write, or that is of another cluster.
    package init?(_ text: String, cluster: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 4 || parts.count == 5, parts[0] == Self.version, parts[1] == cluster,
            let ended = Self.offset(parts[2])
        else {
            return nil
        }
        let numbers =
            parts[3].isEmpty
            ? []
            : parts[3].split(
                separator: ",", omittingEmptySubsequences: false)
        let cursor = numbers.compactMap(Self.offset)
        guard cursor.count == numbers.count else { return nil }
        self.init(endedOffset: ended, registrations: cursor)
        guard parts.count == 5 else { return }
        let written = parts[4].split(separator: ",", omittingEmptySubsequences: false)
        spread = written.compactMap(Self.spreadEvent)
        guard spread.count == written.count,
            spread.allSatisfy({ $0.offset >= ended }),
            zip(spread, spread.dropFirst()).allSatisfy({ $0.offset < $1.offset })
        else { return nil }
    }

    private static func spreadEvent(_ text: Substring) -> SpreadEvent? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let at = offset(parts[0]) else { return nil }
        let share = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard share.count == 2, let index = offset(share[0]), let count = offset(share[1]),
            index < count, count <= Int64(FanOutProgress.countMax)
        else { return nil }
        return SpreadEvent(
            offset: at, progress: FanOutProgress(index: UInt16(index), count: UInt16(count)))
    }

    /// Of two workers' knowledge of registrations what both have.
    static func common(_ one: [Int64], _ other: [Int64]) -> [Int64] { zip(one, other).map(min) }

    private static func offset(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}
