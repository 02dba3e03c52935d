// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
package import PushModel

/// A restriction that has to do with what somebody asks about.
package struct ExplainedRestriction: Sendable, Equatable {
    package var scope: Restriction.Scope
    package var restriction: Restriction
    /// When this worker ceased to follow it; nil while it is in force.
    package var endedAt: WallTime?
}

/// What restrictions mean for a token or an event, for people.
extension Restrictions {
    /// Those of a route's pushes, and the drops of them that are over.
    func explained(_ route: Route, _ routing: RoutingTable) -> [ExplainedRestriction] {
        let scopes = Self.scopes(of: route, routing)
        let all = inForce(of: scopes)
        // Beside a drop or a pause a limit has no effect, and of limits the narrowest counts.
        let strict = all.filter { !$0.restriction.action.isLimit }
        return (strict.isEmpty ? Array(all.prefix(1)) : strict) + drops.ended(of: scopes)
            + inForce(of: [.rollout(app: routing.name(of: route.app))])
    }

    /// The drops of these subjects' events, those included that are over.
    func explained(subjects: [[UInt8]], app: String) -> [ExplainedRestriction] {
        let scopes = subjects.map { Restriction.Scope.subject($0, app: app) }
        return inForce(of: scopes) + drops.ended(of: scopes)
    }

    /// Those of these topics' events, and the drops of them that are over.
    func explained(topics: [String]) -> [ExplainedRestriction] {
        let scopes = topics.map { Restriction.Scope.topic($0) }
        return inForce(of: scopes) + drops.ended(of: scopes)
    }

    /// The drop by which a push of this route ended unsent at this time.
    func drop(of route: Route, _ routing: RoutingTable, at time: WallTime) -> ExplainedRestriction?
    {
        drops.drop(of: Self.scopes(of: route, routing), at: time)
    }

    private func inForce(of scopes: [Restriction.Scope]) -> [ExplainedRestriction] {
        scopes.compactMap { scope in
            inForce[scope].map { ExplainedRestriction(scope: scope, restriction: $0) }
        }
    }
}

extension Restriction.Action {
    fileprivate var isLimit: Bool { if case .limit = self { true } else { false } }
}
