// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import FlatMemory
internal import Planning
internal import PushModel

/// The last outcomes of pushes, for people who ask what became of a token's. They name a token by its
/// route and its first bytes (`PushSlab.tokenStart`): a row of the index may have become another
/// token's.
///
/// An entry is written for each outcome. That of an acceptance is as small as it can be, since it
/// costs every push; acceptances have a ring of their own, so that they do not push out the few
/// failures, and so have drops.
struct RecentOutcomes: ~Copyable {
    /// When a push ended, and its route, in 8 bytes: 48 bits of milliseconds last until the year
    /// 6429.
    struct Stamp: BitwiseCopyable {
        private let bits: Int64

        init(_ route: RouteID, at time: WallTime) {
            bits = time.milliseconds << 16 | Int64(route.rawValue)
        }

        var at: WallTime { WallTime(milliseconds: bits >> 16) }
        var route: RouteID { RouteID(rawValue: UInt16(truncatingIfNeeded: bits)) }
    }

    struct Acceptance: BitwiseCopyable {
        var apnsID: APNSID
        var token: UInt64
        var stamp: Stamp
    }

    struct Failure: BitwiseCopyable {
        var apnsID: APNSID
        var token: UInt64
        var stamp: Stamp
        /// The oldest event that the push answered for.
        var origin: RecordPosition?
        var status: UInt16 = 0
        var reason = APNSReason.none
        var kind: ExplainedOutcome.Kind
        var type: PushType
    }

    private var acceptances = LatestRing<Acceptance>(capacity: Self.acceptancesMax)
    private var failures = LatestRing<Failure>(capacity: Self.failuresMax)
    private var drops = LatestRing<Failure>(capacity: Self.dropsMax)

    /// At 32 and 56 bytes an entry: 512, 224, 56 and 56 KiB. The last are in the state.
    static let acceptancesMax = 16_384
    static let failuresMax = 4096
    static let dropsMax = 1024
    static let unsubscribedMax = 1024

    /// The memory of the rings once they are full.
    var bytes: Int { acceptances.bytes + failures.bytes + drops.bytes }

    /// A push of this route has come back with a 200.
    mutating func accepted(_ slot: PushSlot, _ route: RouteID, _ slab: PushSlab, now: Now) {
        acceptances.append(
            Acceptance(
                apnsID: slab.push(slot).pointee.apnsID, token: slab.tokenStart(slot),
                stamp: Stamp(route, at: now.wall)))
    }

    /// A push has come back with another outcome, of which the state does not know yet. Another 2xx
    /// is among them, though it counts as accepted: APNs documents none, and its status is kept.
    // Not inlined, since every acceptance would otherwise pay for the registers that it needs.
    @inline(never)
    mutating func failed(_ outcome: PushOutcome, _ state: borrowing PipelineState, now: Now) {
        let push = state.slab.push(outcome.slot)
        failures.append(
            Failure(
                apnsID: push.pointee.apnsID, token: state.slab.tokenStart(outcome.slot),
                stamp: Stamp(push.pointee.route, at: now.wall),
                origin: state.pushes[outcome.slot].content.origin, status: outcome.status,
                reason: outcome.reason, kind: .init(outcome.kind), type: push.pointee.type))
    }

    /// A push expired before it was handed over, of which the state does not know yet.
    @inline(never)
    mutating func expiredUnsent(_ slot: UInt32, _ state: borrowing PipelineState, now: Now) {
        let expired = unsent(slot, .expired, state, now: now)
        failures.append(expired)
    }

    /// A push was dropped as an operator wanted, of which the state does not know yet.
    @inline(never)
    mutating func droppedUnsent(_ slot: UInt32, _ state: borrowing PipelineState, now: Now) {
        let dropped = unsent(slot, .dropped, state, now: now)
        drops.append(dropped)
    }

    /// The slab has an earlier push in its slot.
    private func unsent(
        _ slot: UInt32, _ kind: ExplainedOutcome.Kind, _ state: borrowing PipelineState, now: Now
    ) -> Failure {
        state.unsent(
            state.pushes[slot].content, kind,
            to: state.audience.tokenBytes(of: state.pushes.token(of: slot)),
            state.pushes.route(of: slot), now: now)
    }

    /// The acceptances of pushes to this token.
    func acceptances(of token: UnsafeRawBufferPointer, _ route: RouteID) -> [Acceptance] {
        let start = TokenStart(of: token)
        var found: [Acceptance] = []
        acceptances.forEach {
            if start.matches($0.token), $0.stamp.route == route { found.append($0) }
        }
        return found
    }

    /// The other outcomes of pushes to this token.
    func failures(of token: UnsafeRawBufferPointer, _ route: RouteID) -> [Failure] {
        let start = TokenStart(of: token)
        var found: [Failure] = []
        failures.forEach {
            if start.matches($0.token), $0.stamp.route == route { found.append($0) }
        }
        drops.forEach {
            if start.matches($0.token), $0.stamp.route == route { found.append($0) }
        }
        return found
    }
}

/// The first bytes of a token, as entries have them.
struct TokenStart {
    let bytes: UInt64
    /// The bits that count: those of the token's own bytes.
    private let mask: UInt64

    init(of token: UnsafeRawBufferPointer) {
        let count = min(token.count, 8)
        bytes = (0..<count).reduce(0) { $0 | UInt64(token[$1]) << UInt64(8 * $1) }.littleEndian
        mask = (count == 8 ? UInt64.max : (1 << UInt64(8 * count)) - 1).littleEndian
    }

    func matches(_ other: UInt64) -> Bool { (other ^ bytes) & mask == 0 }
}

extension PipelineState {
    /// What is remembered of a push that was not handed over.
    func unsent(
        _ content: PushContent, _ kind: ExplainedOutcome.Kind, to token: UnsafeRawBufferPointer,
        _ route: RouteID, now: Now
    ) -> RecentOutcomes.Failure {
        RecentOutcomes.Failure(
            apnsID: apnsID(content.origin, token: token),
            token: TokenStart(of: token).bytes,
            stamp: RecentOutcomes.Stamp(route, at: now.wall), origin: content.origin, kind: kind,
            type: content.type)
    }
}
