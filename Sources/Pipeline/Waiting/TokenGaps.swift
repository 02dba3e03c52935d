// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import PushModel

/// The least time between two pushes without a payload to one token.
///
/// A gap that a push may be held for is kept in the memory of the worker that sends: it is exact as long as
/// one worker sends to the token. A longer one is kept by the owner of the token's partition of
/// `deferred`, which alone sends such pushes: see `DeferredPushes+MinimumGap`.
struct TokenGaps: ~Copyable {
    /// Whether any route has a gap.
    private(set) var isOn = false
    private var gaps: [Duration]
    /// How long a push may be held.
    private let heldMax: Duration
    /// When each token was last sent a push, in milliseconds, indexed by `TokenID.position`; 0 for
    /// never. Empty where no gap is short. What the numbers leave out of the time returns every 49 days:
    /// once in so long a token may wait for a gap that it need not keep, as may a new token that has
    /// the number of one that is gone.
    private var sentAt = Column<UInt32>(capacity: 1)
    private let byAddress = PassedByAddress()

    enum Gap {
        case none
        /// This worker's memory keeps it.
        case short(Duration)
        /// The owner of the token's row in `deferred` keeps it.
        case long(Duration)
    }

    init(routing: RoutingTable, settings: PipelineSettings) {
        gaps = []
        heldMax = HoldWatch.patience(settings.sizes.holdMax)
        adopt(settings.live.minimumGaps, routing)
    }

    mutating func adopt(_ minimumGaps: MinimumGaps, _ routing: RoutingTable) {
        gaps = routing.routes.map { route in
            guard let type = route.tokenClass.changeType else { return .zero }
            return minimumGaps.gap(type, app: routing.name(of: route.app))
        }
        isOn = gaps.contains { $0 > .zero }
        if !gaps.contains(where: { $0 > .zero && $0 <= heldMax }) {
            sentAt = Column(capacity: 1)
        } else if sentAt.capacity == 1 {
            sentAt = Column(capacity: TokenID.positionsMax)
        }
    }

    /// The gap of pushes with this coalescing key; those with a payload have none.
    func gap(of route: RouteID, coalescingKey: UInt64) -> Gap {
        let gap = gaps[Int(route.rawValue)]
        guard gap > .zero, coalescingKey == 0 else { return .none }
        return gap <= heldMax ? .short(gap) : .long(gap)
    }

    /// The gaps that are kept in `deferred`, by route; zero where there is none.
    var longGaps: [Duration] { gaps.map { $0 > heldMax ? $0 : .zero } }

    func longGap(of route: RouteID, coalescingKey: UInt64) -> Duration? {
        guard isOn, case .long(let gap) = gap(of: route, coalescingKey: coalescingKey) else {
            return nil
        }
        return gap
    }

    /// The memory of what was sent, in bytes.
    var bytes: Int { sentAt.bytes }

    // MARK: Short gaps

    /// When the token may be sent its next push; nil where that is now.
    func nextSend(_ token: TokenID, gap: Duration, now: MonotonicTime) -> MonotonicTime? {
        let index = token.position
        guard index < sentAt.count, sentAt[index] > 0 else { return nil }
        let passed = Int64(Int32(bitPattern: Self.milliseconds(now) &- sentAt[index]))
        let wanted = Int64(gap / .milliseconds(1))
        // The time that was noted is rounded up, so one passes that has not begun.
        return passed >= -1 && passed < wanted ? now + .milliseconds(wanted - passed) : nil
    }

    /// The token was sent a push.
    mutating func sent(_ token: TokenID, now: MonotonicTime) {
        let index = token.position
        // Memory that was never written is zero.
        sentAt.extend(to: index + 1)
        sentAt[index] = max(1, Self.milliseconds(now) &+ 1)
    }

    private static func milliseconds(_ time: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: time.nanoseconds / 1_000_000)
    }
}
