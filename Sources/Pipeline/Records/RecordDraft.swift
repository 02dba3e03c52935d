// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel

/// A record that is to be produced, with what waits for it.
struct RecordDraft {
    var topic: RecordTopic
    /// Nil for that of the key.
    var partition: Int32?
    var key: [UInt8]
    /// Nil for a tombstone.
    var value: [UInt8]?
    var traceparent: String?
    /// Given back when Kafka has the record.
    var claims: [OffsetClaim]
    /// What to produce if the value is too large; nil when there is nothing less to say.
    var fallback: [UInt8]?
    var suppression: TicketTable.IssuedSuppression?

    // Of records of `deferred`.

    /// The offset of the record that this one ends or rewrites.
    var endedOffset: Int64?
    /// When the payload was read that ends this key's older one.
    var endedPayloadAt: WallTime?
    var order: TicketTable.PayloadKey?
    /// The row whose push is sent when Kafka has the record.
    var announces: OffsetClaim?

    init(_ topic: RecordTopic, key: [UInt8], value: [UInt8]?, claims: [OffsetClaim] = []) {
        self.topic = topic
        self.key = key
        self.value = value
        self.claims = claims
    }
}
