// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One assignment of one partition: (topic, partition, assignment epoch). Whatever was begun under
/// an earlier assignment of the same partition has another number and cannot disturb this one.
package struct TrackID: Hashable, Sendable, BitwiseCopyable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// An offset that may not be stored yet because something that it owes has not ended.
package struct HolderID: Hashable, Sendable, BitwiseCopyable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// A claim on an offset: whoever has it must give it back to the ledger exactly once.
package struct Hold: Hashable, Sendable, BitwiseCopyable {
    package var track: TrackID
    package var holder: HolderID
    /// What it holds: of two claims on one track the older is the one to keep.
    package var offset: Int64

    package init(track: TrackID, holder: HolderID, offset: Int64) {
        self.track = track
        self.holder = holder
        self.offset = offset
    }
}

/// Where a record stands in Kafka.
package struct RecordPosition: Hashable, Sendable, BitwiseCopyable {
    /// Of an event that nobody remembers.
    package static let unknown = RecordPosition(topic: 0, partition: 0, offset: 0)

    /// Position in the list of subscribed topics.
    package var topic: UInt16
    package var partition: Int32
    package var offset: Int64

    package init(topic: UInt16, partition: Int32, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
    }
}
