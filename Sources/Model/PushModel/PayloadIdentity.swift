// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which pushes with a payload replace one another. Whoever makes such a push derives it alike, so
/// that one that was sent again, by whatever way, still replaces the one before.
package struct PayloadIdentity: Hashable, Sendable {
    /// Pushes of one token with the same key are one; never 0, which is "look again".
    package let coalescingKey: UInt64
    /// The value of `apns-collapse-id`; empty where the header is left out.
    package let collapseID: [UInt8]

    /// - Parameters:
    ///   - collapseID: the event's own, or one that an earlier value of this type gave.
    ///   - body: the payload. After an unclean election two events may have had one offset.
    ///   - event: `StableHash.event` of the event.
    package init(
        type: PushType, collapseID: String?, body: [UInt8], event: StableHash.Value
    ) {
        var own = StableHash(seed: event.low)
        body.withUnsafeBytes { own.combine($0) }
        let event = own.finish()
        // An alert that is sent again after a crash must replace the one before, not stand beside it.
        let fallback = type == .alert ? APNSID(hash: event).text : nil
        if let collapseID, collapseID != fallback {
            let bytes = Array(collapseID.utf8)
            coalescingKey =
                bytes.withUnsafeBytes { StableHash.hash64($0, seed: UInt64(type.rawValue)) } | 1
            self.collapseID = bytes
        } else {
            coalescingKey = event.low | 1
            self.collapseID = fallback.map { Array($0.utf8) } ?? []
        }
    }
}

extension StableHash {
    /// Identifies an event across workers and restarts.
    /// - Parameter topicSeed: that of the topic's name; kept, since it costs a walk over the name.
    package static func event(topicSeed: UInt64, partition: Int32, offset: Int64) -> Value {
        var hash = StableHash(seed: topicSeed)
        hash.combine(UInt64(UInt32(bitPattern: partition)))
        hash.combine(UInt64(bitPattern: offset))
        return hash.finish()
    }

    /// Makes the same place in another topic another event.
    package static func topicSeed(_ name: String) -> UInt64 {
        var name = name
        return name.withUTF8 { hash64(UnsafeRawBufferPointer($0), seed: 0) }
    }
}
