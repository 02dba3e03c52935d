// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The routes of one pool and urgency that have something queued, the next to be served first.
struct RouteTurns {
    private(set) var routes: [RouteID] = []
    private var position = 0

    mutating func join(_ route: RouteID) { routes.append(route) }

    /// Returns the route whose turn it is and passes the turn on; nil when all are blocked.
    mutating func next(isBlocked: (RouteID) -> Bool) -> RouteID? {
        for _ in 0..<routes.count {
            let route = routes[position]
            pass(to: position + 1)
            if !isBlocked(route) { return route }
        }
        return nil
    }

    mutating func leave(_ route: RouteID) {
        let index = routes.firstIndex(of: route)!
        routes.remove(at: index)
        pass(to: position - (index < position ? 1 : 0))
    }

    /// Wraps at once: a route that joins at the end comes after those that wait already.
    private mutating func pass(to next: Int) { position = next < routes.count ? next : 0 }
}

/// Which urgencies of one pool have something queued, and which is served next: the most urgent, but
/// of each `floor` pushes one that is less urgent, so that nothing starves.
struct UrgencyTurns: BitwiseCopyable {
    /// A bit for each urgency that has something queued.
    private(set) var waiting: UInt8 = 0
    /// How many pushes have gone since the last less urgent one, while such waited.
    private var passed: UInt8 = 0
    /// The urgency that was served last for the floor.
    private var served = Urgency.immediate

    /// A tenth of the pushes is for those that are less urgent.
    static let floor: UInt8 = 10

    mutating func join(_ urgency: Urgency) { waiting |= Self.bit(urgency) }
    mutating func leave(_ urgency: Urgency) { waiting &= ~Self.bit(urgency) }

    /// Calls `serve` with one urgency after the other, in the order in which they are to be served,
    /// until it returns a route.
    mutating func next(_ serve: (Urgency) -> RouteID?) -> (RouteID, Urgency)? {
        // Nearly always there is one urgency alone.
        if waiting & (waiting &- 1) == 0 {
            guard waiting != 0 else { return nil }
            // 1, 2 and 4 become 0, 1 and 2.
            let urgency = Urgency(rawValue: waiting >> 1)!
            return serve(urgency).map { ($0, urgency) }
        }
        return nextOfSeveral(serve)
    }

    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    private mutating func nextOfSeveral(_ serve: (Urgency) -> RouteID?) -> (RouteID, Urgency)? {
        if passed >= Self.floor - 1, let next = nextOfFloor(serve) { return next }
        for number in 0..<Urgency.count {
            let urgency = Urgency(rawValue: number)!
            guard has(urgency), let route = serve(urgency) else { continue }
            let areLessUrgentWaiting = waiting >= Self.bit(urgency) << 1
            if areLessUrgentWaiting { passed = min(passed + 1, Self.floor) }
            return (route, urgency)
        }
        return nil
    }

    /// The less urgent take turns.
    private mutating func nextOfFloor(_ serve: (Urgency) -> RouteID?) -> (RouteID, Urgency)? {
        for step in 1...Urgency.count {
            let urgency = Urgency(rawValue: (served.rawValue + step) % Urgency.count)!
            // The lowest bit is that of the most urgent.
            guard has(urgency), waiting & (Self.bit(urgency) - 1) != 0, let route = serve(urgency)
            else { continue }
            passed = 0
            served = urgency
            return (route, urgency)
        }
        return nil
    }

    func has(_ urgency: Urgency) -> Bool { waiting & Self.bit(urgency) != 0 }

    private static func bit(_ urgency: Urgency) -> UInt8 { 1 << urgency.rawValue }
}
