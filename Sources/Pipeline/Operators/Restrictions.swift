// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
package import PushModel
internal import RecordFormats

/// What operators have paused, dropped and limited, by the records of the restrictions topic, and what
/// the configuration has: what that means for each route goes to the `CircuitBreakers`, what it
/// means for events to the `FanOut`.
package struct Restrictions: ~Copyable {
    /// Those that were read and not lifted. One that is over stays until it is lifted or room is
    /// short: the clock may have been wrong.
    private var known: [Restriction.Scope: Restriction] = [:]
    private var configured: [ConfiguredRestriction]
    /// When each of `configured` came into force.
    private var configuredAt: [Restriction.Scope: WallTime] = [:]
    /// Those in force.
    package private(set) var inForce: [Restriction.Scope: Restriction] = [:]
    /// The drops that are or were in force, for people.
    private(set) var drops = DropHistory()
    /// How often what is in force has changed.
    package private(set) var changes = 0
    /// The topics of events that are to be left in Kafka, by binding.
    package private(set) var pausedTopics: [Bool]
    /// This worker's share of what limits allow the fleet, from 0 to 1.
    package var share = 1.0 {
        didSet { if share != oldValue { hasNewShare = true } }
    }
    private var hasNewShare = false
    /// When the first of those in force ends by itself.
    private var nextEnd: WallTime?
    /// When it was last found what is in force.
    private var lookedAt = WallTime(milliseconds: 0)
    /// Whether what is in force must be found anew.
    private var isStale: Bool
    /// Pushes a second that the limits allow the fleet.
    private var limits: [Double] = []
    private var decoder = RestrictionDecoder()

    /// More than an operator needs, and few enough to look at all of them for each change.
    static let countMax = 10_000
    /// A worker without partitions has none of a limit's share, and may have pushes on their way.
    private static let shareMin = 0.001

    init(topics: Int, configured: [ConfiguredRestriction]) {
        pausedTopics = Array(repeating: false, count: topics)
        self.configured = configured
        isStale = !configured.isEmpty
    }

    /// Another configuration. `advance` makes it effective.
    mutating func adopt(_ configured: [ConfiguredRestriction]) {
        guard configured != self.configured else { return }
        // What is as it was has been in force since then.
        for restriction in self.configured where !configured.contains(restriction) {
            configuredAt[restriction.scope] = nil
        }
        self.configured = configured
        isStale = true
    }

    /// A record of the restrictions topic was read. `advance` makes it effective.
    mutating func read(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) {
        let (scope, restriction) = try decoder.decode(key: key, value: value)
        let needsRoom = restriction != nil && known[scope] == nil
        if needsRoom, known.count >= Self.countMax {
            known = known.filter { isInForce($0.value) }
        }
        guard !needsRoom || known.count < Self.countMax else {
            throw UnreadableRecord(.tooManyRows, "more than \(Self.countMax) restrictions")
        }
        known[scope] = restriction
        isStale = true
    }

    /// Makes effective what was read, and ends what is over.
    mutating func advance(
        _ state: inout PipelineState, _ fanOut: inout FanOut,
        now: Now
    ) {
        if isStale || now.wall < lookedAt || nextEnd.map({ $0 <= now.wall }) ?? false {
            findWhatIsInForce(now: now.wall)
            restrictRoutes(state.routing, &state.breakers, now: now.monotonic)
            restrictEvents(state, &fanOut)
            state.rollouts.adopt(inForce, state.routing)
            fanOut.abandonDropped(&state)
            changes += 1
        } else if hasNewShare, !limits.isEmpty {
            state.breakers.adopt(rates: rates, now: now.monotonic)
        }
        hasNewShare = false
    }

    private mutating func findWhatIsInForce(now: WallTime) {
        lookedAt = now
        inForce = known.filter { isInForce($0.value) }
        nextEnd = inForce.values.compactMap(\.until).min()
        for restriction in configured {
            let since = configuredAt[restriction.scope] ?? now
            configuredAt[restriction.scope] = since
            // An operator may only be stricter than the configuration.
            if let other = inForce[restriction.scope]?.action,
                !restriction.action.isStricter(than: other)
            {
                continue
            }
            inForce[restriction.scope] = Restriction(
                restriction.action, by: ConfiguredRestriction.by, at: since)
        }
        drops.follow(inForce, now: now)
        isStale = false
    }

    private func isInForce(_ restriction: Restriction) -> Bool {
        restriction.until.map { $0 > lookedAt } ?? true
    }

    // MARK: Pushes

    private mutating func restrictRoutes(
        _ routing: RoutingTable, _ breakers: inout CircuitBreakers, now: MonotonicTime
    ) {
        var positions: [Restriction.Scope: Int] = [:]
        limits = []
        for (scope, restriction) in inForce {
            guard case .limit(let rate) = restriction.action else { continue }
            positions[scope] = limits.count
            limits.append(Double(rate))
        }
        let restrictions = routing.routes.map { route in
            let scopes = Self.scopes(of: route, routing).filter { inForce[$0] != nil }
            let actions = scopes.map { inForce[$0]!.action }
            if actions.contains(.drop) { return RouteRestriction.dropped }
            if actions.contains(.pause) { return .paused }
            return scopes.first.flatMap { positions[$0] }.map { .limited($0) } ?? .none
        }
        breakers.restrict(restrictions, rates: rates, now: now)
    }

    /// The scopes that a push of this route is of, the narrowest first.
    static func scopes(
        of route: Route, _ routing: RoutingTable
    ) -> [Restriction.Scope] {
        let app = routing.name(of: route.app)
        return [
            .pushes(app: app, tokenClass: route.tokenClass),
            .pushes(app: app, tokenClass: nil), .pushes(app: nil, tokenClass: route.tokenClass),
        ]
    }

    private var rates: [Double] { limits.map { $0 * max(share, Self.shareMin) } }

    // MARK: Events

    private mutating func restrictEvents(_ state: borrowing PipelineState, _ fanOut: inout FanOut) {
        var dropped = DroppedEvents(topics: pausedTopics.count)
        for topic in pausedTopics.indices {
            let action = inForce[.topic(state.settings.eventTopics[topic])]?.action
            dropped.topics[topic] = action == .drop
            pausedTopics[topic] = action == .pause
        }
        for (scope, restriction) in inForce {
            guard case .subject(let subject, let app) = scope, restriction.action == .drop,
                let app = state.routing.app(named: app)
            else { continue }
            dropped.subjects[app, default: []].insert(subject)
        }
        fanOut.dropped = dropped
    }
}

/// The events that an operator drops.
struct DroppedEvents {
    /// By binding.
    var topics: [Bool] { didSet { hasTopics = topics.contains(true) } }
    var subjects: [AppID: Set<[UInt8]>] = [:] { didSet { hasSubjects = !subjects.isEmpty } }
    // Asked for each event, where a look at a dictionary or an array would cost more.
    private(set) var hasTopics = false
    private(set) var hasSubjects = false

    init(topics: Int) { self.topics = Array(repeating: false, count: topics) }

    /// Whether the subject of an event is dropped; an installation is none.
    func isDropped(_ event: Event) -> Bool {
        event.scope == .subject && isDropped(event.subject, of: event.app)
    }

    func isDropped(_ subject: UnsafeRawBufferPointer, of app: AppID) -> Bool {
        subjects[app].map { $0.contains(Array(subject)) } ?? false
    }
}
