// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What delivery needs to know of one push. The planner writes it before the push is handed over
/// and does not touch it again until the outcome has come back, so both threads may read it without
/// synchronisation.
@usableFromInline
package struct WirePush: BitwiseCopyable {
    package var route = RouteID(rawValue: 0)
    package var type = PushType.controls
    /// The value of `apns-priority`; 0 leaves the header out.
    package var priority: UInt8 = 0
    @usableFromInline package var tokenBytes: UInt16 = 0
    package var collapseIDBytes: UInt8 = 0
    /// The value of `apns-expiration` in Unix seconds; negative leaves the header out.
    package var expiration: Int64 = -1
    package var apnsID = APNSID.none
    /// A push that is not on the wire by then is not sent any more.
    package var expiresAt = MonotonicTime.distantFuture
    package var bodyBytes: UInt32 = 0
    /// The body, lent by the planner until the outcome; constant for pushes without a payload.
    package var body: UnsafePointer<UInt8>? = nil
    package var collapseID: UnsafePointer<UInt8>? = nil
    /// The device token where it is longer than `PushSlab.inlineTokenBytes`; lent like the body.
    @usableFromInline package var longToken: UnsafePointer<UInt8>? = nil

    package init() {}
}

/// A position in the slab: names a push to planner and delivery alike.
@usableFromInline package typealias PushSlot = UInt32

/// The pushes of one worker, at fixed addresses, allocated once. Owned by the planner; a slot is
/// delivery's between hand-over and outcome.
@usableFromInline
package struct PushSlab: @unchecked Sendable {
    // SAFETY: the memory lives as long as the process; a slot is passed between the two threads
    // through queues with release/acquire order, and only one of them touches it at a time.
    @usableFromInline package let slots: Int
    @usableFromInline let pushes: UnsafeMutablePointer<WirePush>
    @usableFromInline let tokens: UnsafeMutablePointer<UInt8>
    private let reasons: UnsafeMutablePointer<UInt8>

    /// Longer than any token seen (100 bytes were announced in 2016), and a power of two.
    @inlinable package static var inlineTokenBytes: Int { 128 }
    /// How many bytes of an unknown reason are kept for the dead letter.
    package static let reasonBytes = 64

    /// Never freed: one per worker, for its whole life.
    package init(slots: Int) {
        precondition(
            slots > 0 && slots < Int(PushSlot.max),
            "there is at least one slot, and 32 bits number all of them")
        self.slots = slots
        pushes = .allocate(capacity: slots)
        pushes.initialize(repeating: WirePush(), count: slots)
        tokens = .allocate(capacity: slots * Self.inlineTokenBytes)
        reasons = .allocate(capacity: slots * Self.reasonBytes)
    }

    package var bytes: Int {
        slots * (MemoryLayout<WirePush>.stride + Self.inlineTokenBytes + Self.reasonBytes)
    }

    // Inlinable, like clocks, identifiers and the slab: together that saved 700 of 6,733
    // instructions per push.
    @inlinable
    package func push(_ slot: PushSlot) -> UnsafeMutablePointer<WirePush> {
        assert(Int(slot) < slots, "a slot's number lies below the count of slots")
        return pushes + Int(slot)
    }

    /// The memory for a token of at most `inlineTokenBytes`.
    @inlinable
    package func inlineToken(_ slot: PushSlot) -> UnsafeMutablePointer<UInt8> {
        assert(Int(slot) < slots, "a slot's number lies below the count of slots")
        return tokens + Int(slot) &* Self.inlineTokenBytes
    }

    @inlinable
    package func token(_ slot: PushSlot) -> UnsafeBufferPointer<UInt8> {
        let push = push(slot)
        assert(
            push.pointee.longToken != nil || push.pointee.tokenBytes <= Self.inlineTokenBytes,
            "a long token has memory of its own")
        return UnsafeBufferPointer(
            start: push.pointee.longToken ?? UnsafePointer(inlineToken(slot)),
            count: Int(push.pointee.tokenBytes))
    }

    /// The first bytes of a token that is being sent to, or was last: enough to find its outcomes
    /// among others, since Apple's tokens are random. Of a token shorter than eight bytes the rest
    /// is anything.
    @inlinable
    package func tokenStart(_ slot: PushSlot) -> UInt64 {
        UnsafeRawPointer(inlineToken(slot)).loadUnaligned(as: UInt64.self)
    }

    /// Keeps Apple's word for a reason that the table does not know; cut at a character where it is
    /// longer than `reasonBytes`.
    package func keepReason(_ text: String, of slot: PushSlot) {
        let room = reason(slot)
        room.update(repeating: 0)
        var used = 0
        for character in text {
            let bytes = character.utf8
            if used + bytes.count > room.count { break }
            for byte in bytes {
                room[used] = byte
                used += 1
            }
        }
    }

    /// The reason that `keepReason` has kept. Call it only for an outcome whose reason is unknown:
    /// for any other, the text is that of an earlier push or was never written.
    package func reasonText(_ slot: PushSlot) -> String {
        String(decoding: reason(slot).prefix { $0 != 0 }, as: UTF8.self)
    }

    private func reason(_ slot: PushSlot) -> UnsafeMutableBufferPointer<UInt8> {
        UnsafeMutableBufferPointer(
            start: reasons + Int(slot) &* Self.reasonBytes, count: Self.reasonBytes)
    }
}
