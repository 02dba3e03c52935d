// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// One record of an events topic, as Kafka lends it. Nothing is copied: the decoded event points
/// into these bytes.
package struct EventRecord {
    /// The index of the topic's binding among those that the decoder was made with.
    package var binding: Int
    package var key: UnsafeRawBufferPointer?
    package var value: UnsafeRawBufferPointer?
    /// Kafka's timestamp; negative where the record has none.
    package var timestamp: WallTime
    /// Where it stands in its partition; without meaning for a sample that stands in none.
    package var offset: Int64

    package init(
        binding: Int, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
        timestamp: WallTime, offset: Int64 = 0
    ) {
        self.binding = binding
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.offset = offset
    }

    /// Looks up the last header of a name. Drivers parse headers lazily, so it is called only where
    /// a binding or an event needs it.
    package typealias HeaderLookup = (String) -> UnsafeRawBufferPointer?

    /// The header of W3C's Trace Context; also the name of CloudEvents' attribute for it.
    package static var traceparentHeader: String { "traceparent" }
}

/// Defaults and bounds for the events of all topics.
package struct EventSettings: Sendable {
    /// The life of an event without a payload.
    package var changeTTL: Duration = .seconds(24 * 3600)
    /// The life of an event with a payload.
    package var payloadTTL: Duration = .seconds(3600)
    /// Whether an event may reload every control of a kind.
    package var allowKindWide = false
    /// Whether an event may be for an installation.
    package var allowInstallations = false
    /// Kafka's default `message.max.bytes`, rounded up.
    package var recordBytesMax = 1 << 20
    /// Whether the header `traceparent` is looked for in records whose value is not read, too.
    /// Where it is, the record's headers are parsed for it.
    package var readsTraceparent = false
    /// Whether shards are left out: a worker that leaves them to others sends the whole event itself.
    package var leavesShards = false

    package init() {}
}
