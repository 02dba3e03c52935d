// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How a push that was handed over came back; there is exactly one outcome per push.
package struct PushOutcome: BitwiseCopyable {
    package enum Kind: UInt8, Sendable, BitwiseCopyable {
        /// APNs answered; `status` and `reason` hold what it said.
        case answered
        /// Provably not processed, and delivery cannot re-send it (it is draining, or no
        /// connection could be made). Costs no attempt.
        case unprocessed
        /// The connection died or the deadline passed after it was sent: APNs may have it.
        case unknown
        /// It had expired before it was sent.
        case expired
    }

    package var slot: PushSlot
    package var kind: Kind
    package var reason: APNSReason
    /// The HTTP status; 0 unless answered.
    package var status: UInt16
    /// The `timestamp` of a 410 in milliseconds since 1970; negative when there was none.
    package var apnsTimestamp: Int64
    /// The seconds to wait that a `retry-after` header asks for. Apple documents no such header,
    /// but a proxy may send one.
    package var retryAfterSeconds: UInt16
    /// Whether the push failed on a connection that fails while the pool's others do not, so that the
    /// failure says nothing of the pool. It stands where there is room for it.
    package var isOutlier = false
    /// When the request was given to the connection; zero if it never was.
    package var sentAt: MonotonicTime

    package init(
        slot: PushSlot, kind: Kind, status: UInt16 = 0, reason: APNSReason = .none,
        apnsTimestamp: Int64 = -1, retryAfterSeconds: UInt16 = 0,
        sentAt: MonotonicTime = MonotonicTime(nanoseconds: 0)
    ) {
        self.slot = slot
        self.kind = kind
        self.status = status
        self.reason = reason
        self.apnsTimestamp = apnsTimestamp
        self.retryAfterSeconds = retryAfterSeconds
        self.sentAt = sentAt
    }
}
