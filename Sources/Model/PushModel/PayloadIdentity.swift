// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Decides which pushes with a payload replace one another. It is derived in the same way wherever
/// a push is made, so a push that is made again, on whatever path, still replaces the earlier one.
package struct PayloadIdentity: Hashable, Sendable {
    /// Pushes to one token with the same key are coalesced. Never 0, the key of "look again".
    package let coalescingKey: UInt64
    /// The value of `apns-collapse-id`; empty where the header is left out.
    package let collapseID: [UInt8]
    /// Whether another event may bring a payload that replaces this one.
    package let isReplaceable: Bool

    /// - Parameters:
    ///   - payload: its body is hashed because two events may have had the same offset after an
    ///     unclean leader election.
    ///   - collapseID: the event's own, or `collapseID` of an earlier value of this type.
    ///   - event: `StableHash.event` of the event.
    package init(_ payload: EventPayload, collapseID: String?, event: StableHash.Value) {
        let type = payload.type
        var own = StableHash(seed: event.low)
        payload.body.withUnsafeBytes { own.combine($0) }
        let event = own.finish()
        // An alert that is sent again after a crash must replace the earlier one and not stand
        // beside it.
        let fallback = type == .alert ? APNSID(hash: event).text : nil
        // The token of an activity that runs shows the newest state alone, and two pushes that say
        // nothing are one.
        let isState = payload.activity.map { $0.event != .start } ?? payload.isEmpty
        let chosen = collapseID == fallback ? nil : collapseID
        isReplaceable = chosen != nil || isState
        if isReplaceable {
            let bytes = Array((chosen ?? "").utf8)
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
    /// - Parameter topicSeed: `topicSeed(_:)` of the topic's name, which callers keep, since
    ///   computing it reads the whole name.
    package static func event(topicSeed: UInt64, partition: Int32, offset: Int64) -> Value {
        var hash = StableHash(seed: topicSeed)
        hash.combine(UInt64(UInt32(bitPattern: partition)))
        hash.combine(UInt64(bitPattern: offset))
        return hash.finish()
    }

    /// A seed that tells apart events at the same position of different topics.
    package static func topicSeed(_ name: String) -> UInt64 {
        var name = name
        return name.withUTF8 { hash64(UnsafeRawBufferPointer($0), seed: 0) }
    }
}
