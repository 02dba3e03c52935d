// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Which of a partition's owners has written a record, in the order in which they owned it.
///
/// Each record of a registrar has it in a header, so that whoever reads the log can tell what a former
/// owner wrote without knowing it from what the owner wrote.
package struct Ownership: Hashable, Comparable, Sendable {
    /// The end of the partition when its owner had read it. What an owner writes is behind the end that
    /// the next one reads to, so this alone decides unless an owner has written nothing.
    package var since: Int64
    /// When that was, in seconds since 1970 by the owner's clock: decides where the first of two owners
    /// had written nothing before the second had the partition.
    package var seconds: UInt32

    package init(since: Int64, seconds: UInt32) {
        self.since = since
        self.seconds = seconds
    }

    package init(since: Int64, at time: WallTime) {
        self.init(since: since, seconds: UInt32(clamping: time.milliseconds / 1000))
    }

    /// Somebody's before all who say since when they own it.
    static let unknownFormer = Ownership(since: 0, seconds: 0)

    package static func < (one: Ownership, other: Ownership) -> Bool {
        (one.since, one.seconds) < (other.since, other.seconds)
    }

    /// The header's value, such as `17 1800000000`.
    package var text: String { "\(since) \(seconds)" }

    /// - Parameter offset: of the record, which lies behind the beginning of its owner's time.
    /// - Returns: nil if the text is none, or cannot be true of a record there.
    package init?(text: String, at offset: Int64) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let since = Int64(parts[0]), let seconds = UInt32(parts[1]),
            (0...max(0, offset)).contains(since)
        else { return nil }
        self.init(since: since, seconds: seconds)
    }
}

/// The order that a client has given a request; it holds whichever owner the request came to.
package enum ClientOrder: Hashable, Sendable {
    /// The last write wins.
    case none
    /// A registration with this sequence.
    case sequence(Int64)
    /// A removal of what has a sequence below.
    case below(Int64)

    /// Whether the client wants this one to stand rather than the other; nil if it has not said so.
    func prevails(over other: ClientOrder) -> Bool? {
        switch (self, other) {
        case (.sequence(let one), .sequence(let two)): one == two ? nil : one > two
        case (.sequence(let one), .below(let bound)): one >= bound
        case (.below(let bound), .sequence(let two)): two < bound
        case (.below, .below), (.none, _), (_, .none): nil
        }
    }
}

/// What decides which of two records of a handler stands. Mostly the later one; but one of a former owner,
/// which has come to the log after one of the next owner, does not.
struct RecordStanding: Hashable {
    var offset: Int64
    /// nil for a record that no registrar has written.
    var owner: Ownership?
    var order = ClientOrder.none

    func prevails(over other: RecordStanding) -> Bool {
        guard let owner, let others = other.owner, owner != others else {
            return offset > other.offset
        }
        return order.prevails(over: other.order) ?? (owner > others)
    }
}
