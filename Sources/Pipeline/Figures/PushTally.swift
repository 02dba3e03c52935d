// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import FlatMemory
package import PushModel
internal import RecordFormats

/// Counts pushes as they end, by app, push type, outcome and reason, and the times from event to
/// acceptance. Each push that has been asked for and has not joined another one ends with exactly
/// one outcome here. At any time the pushes of a worker add up:
///
///     pushesQueued + pushesFollowedUp + deferredSent + pushesUnqueued
///         = all that ended here + deferred + what is queued, in flight or resting
///
/// The counters are those of `Counters`. `PushPipeline.pushesAddUp` checks it.
///
/// Acceptances come in runs of the same kind, such as those of one event, so a run is counted as one.
/// That costs a few instructions for a push, and no allocation. The cells of an app and a push type
/// are made when the first such push ends, some 2 KiB.
package struct PushTally: ~Copyable {
    package enum Outcome: Int, Sendable, CaseIterable {
        case accepted
        /// Failed for good; a dead letter says how.
        case rejected
        case expired
        /// Not sent, since the token was known to be dead.
        case suppressed
        /// No registration has the token any more, or APNs has called it dead.
        case unregistered
        /// APNs has called the token dead, and was not believed.
        case deadUnconfirmed
        /// A newer payload of the collapse ID was accepted.
        case superseded
        /// An operator has dropped it.
        case dropped
        /// The token had ceased to show the subject of its payload.
        case unsubscribed
        /// Not sent, since another sender serves the token while the app moves.
        case otherSender

        /// The value of the metric's label.
        package var name: String {
            switch self {
            case .deadUnconfirmed: "dead_unconfirmed"
            case .otherSender: "other_sender"
            default: String(describing: self)
            }
        }
    }

    /// Why a push failed: a reason of APNs that is known, or one of the worker's own.
    package struct Reason: Sendable, Hashable, BitwiseCopyable {
        /// That of `APNSReason`, and two more.
        fileprivate let number: Int

        static var none: Reason { Reason(.none) }
        static var attemptsExhausted: Reason { Reason(number: APNSReason.allCases.count) }
        static var deferralTooLarge: Reason { Reason(number: APNSReason.allCases.count + 1) }
        fileprivate static var count: Int { APNSReason.allCases.count + 2 }

        init(_ reason: APNSReason) { number = Int(reason.rawValue) }
        fileprivate init(number: Int) { self.number = number }

        /// The value of the metric's label: empty where there is no reason, `other` for one that
        /// Apple has not documented.
        package var name: String {
            switch self {
            case .none: ""
            case .attemptsExhausted: DeadLetter.OwnReason.attemptsExhausted.rawValue
            case .deferralTooLarge: DeadLetter.OwnReason.deferralTooLarge.rawValue
            case Reason(.unknown): "other"
            default: APNSReason(rawValue: UInt8(number))!.name
            }
        }
    }

    /// How many pushes ended alike.
    package struct Count: Codable, Sendable, Equatable {
        package var app: String
        /// The name of the push type.
        package var type: String
        /// The `name` of an `Outcome`.
        package var outcome: String
        /// The `name` of a `Reason`.
        package var reason: String
        package var count: Int
    }

    /// Acceptances of one route, push type and time.
    private struct Run {
        var route = RouteID(rawValue: 0)
        var type = PushType.controls
        /// The milliseconds from event to acceptance; meaningless where `isTimed` is false. No push
        /// has this first value, so that the first one begins a run of its own.
        var time = Int64.min
        var isTimed = false
        var count = 0
    }

    /// The acceptances that are not in the cells yet.
    private var run = Run()
    /// By route.
    private let apps: [AppID]
    private let appNames: [String]
    /// The first cell of each app and push type; `none` where no such push has ended.
    private var firstCells: Column<UInt32>
    private var cells: Column<Int>
    private var totals: Column<Int>
    /// How many pushes of each type were accepted after so many milliseconds, which nearly all are.
    private var quick: Column<Int>
    /// The times of the others, by push type.
    private var slow = PushType.allTypes.map { _ in LatencyHistogram() }
    private let byAddress = PassedByAddress()

    private static let none = UInt32.max
    private static let quickMax = 128
    private let types = PushType.all.count
    private let reasons = Reason.count
    private let cellsPerBlock = Outcome.allCases.count * Reason.count

    init(routing: RoutingTable) {
        apps = routing.routes.map(\.app)
        appNames = routing.apps
        let blocks = routing.apps.count * types
        firstCells = Column(capacity: blocks)
        firstCells.resize(to: blocks, filling: Self.none)
        cells = Column(capacity: blocks * cellsPerBlock)
        totals = Column(capacity: Outcome.allCases.count)
        totals.resize(to: Outcome.allCases.count, filling: 0)
        quick = Column(capacity: types * Self.quickMax)
        quick.resize(to: types * Self.quickMax, filling: 0)
    }

    // MARK: Pushes end

    /// A push was accepted.
    /// - Parameter writtenAt: when the oldest event was written that it answers for; 0 if that is
    ///   not known.
    @inline(__always)
    mutating func accepted(
        _ route: RouteID, _ type: PushType, writtenAt: WallTime, now: WallTime
    ) {
        let time = now.milliseconds &- writtenAt.milliseconds
        if run.time == time, run.route.rawValue == route.rawValue, run.type == type {
            run.count &+= 1
        } else {
            closeRun()
            run = Run(
                route: route, type: type, time: time, isTimed: writtenAt.milliseconds > 0, count: 1)
        }
    }

    /// A push ended otherwise.
    mutating func ended(
        _ outcome: Outcome, _ route: RouteID, _ type: PushType, _ reason: Reason = .none
    ) {
        add(1, outcome, route, type, reason)
    }

    private mutating func add(
        _ count: Int, _ outcome: Outcome, _ route: RouteID, _ type: PushType, _ reason: Reason
    ) {
        let block = Int(apps[Int(route.rawValue)].rawValue) * types + Int(type.rawValue)
        if firstCells[block] == Self.none {
            firstCells[block] = UInt32(cells.count)
            cells.resize(to: cells.count + cellsPerBlock, filling: 0)
        }
        cells[Int(firstCells[block]) + outcome.rawValue * reasons + reason.number] += count
        totals[outcome.rawValue] += count
    }

    /// Brings the acceptances of the last run into the cells. Call it before they are read.
    @inline(never)
    mutating func closeRun() {
        guard run.count > 0 else { return }
        add(run.count, .accepted, run.route, run.type, .none)
        if run.isTimed { add(run.count, run.type, milliseconds: run.time) }
        run.count = 0
    }

    /// A negative time counts as zero: the clocks of two hosts may differ.
    private mutating func add(_ count: Int, _ type: PushType, milliseconds time: Int64) {
        if time < Int64(Self.quickMax) {
            quick[Int(type.rawValue) * Self.quickMax + Int(max(0, time))] += count
        } else {
            slow[Int(type.rawValue)].add(
                nanoseconds: Duration.milliseconds(time).nanoseconds, count: UInt64(count))
        }
    }

    // MARK: What was counted

    /// How many pushes have ended.
    var total: Int { Outcome.allCases.reduce(0) { $0 + total($1) } }

    func total(_ outcome: Outcome) -> Int {
        totals[outcome.rawValue] + (outcome == .accepted ? run.count : 0)
    }

    /// Every count that is not zero.
    package var counts: [Count] {
        assert(run.count == 0, "the run is added to the totals before they are read")
        var counts: [Count] = []
        for block in 0..<firstCells.count where firstCells[block] != Self.none {
            let (app, type) = block.quotientAndRemainder(dividingBy: types)
            for outcome in Outcome.allCases {
                for number in 0..<reasons {
                    let cell = Int(firstCells[block]) + outcome.rawValue * reasons + number
                    guard cells[cell] > 0 else { continue }
                    counts.append(
                        Count(
                            app: appNames[app], type: PushType.all[type].name,
                            outcome: outcome.name,
                            reason: Reason(number: number).name, count: cells[cell]))
                }
            }
        }
        return counts
    }

    /// The times from the writing of an event to the acceptance of its push, of the types that were
    /// accepted.
    package var acceptanceTimes: [(type: PushType, times: LatencyHistogram)] {
        assert(run.count == 0, "the run is added to the totals before they are read")
        return PushType.allTypes.compactMap { type in
            var times = slow[Int(type.rawValue)]
            for time in 0..<Self.quickMax {
                let count = quick[Int(type.rawValue) * Self.quickMax + time]
                times.add(nanoseconds: Int64(time) * 1_000_000, count: UInt64(count))
            }
            return times.count > 0 ? (type, times) : nil
        }
    }
}
