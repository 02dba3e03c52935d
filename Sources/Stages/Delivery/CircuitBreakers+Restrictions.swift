// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What an operator has decided about the pushes of one route.
package enum RouteRestriction: Sendable, Equatable {
    case none
    case paused
    case dropped
    /// The position in the list of limits.
    case limited(Int)
}

extension CircuitBreakers {
    /// Adopts what operators have decided.
    /// - Parameters:
    ///   - restrictions: of each route.
    ///   - rates: of each limit, in pushes a second of this worker.
    package mutating func restrict(
        _ restrictions: [RouteRestriction], rates: [Double], now: MonotonicTime
    ) {
        precondition(restrictions.count == routes.count, "restrictions must cover every route")
        hasDrops = restrictions.contains(.dropped)
        quotas = [.unlimited, .none] + rates.map { SendingQuota(rate: $0, now: now) }
        for (row, restriction) in restrictions.enumerated() {
            routes[row].isDropping = restriction == .dropped
            routes[row].quota =
                switch restriction {
                case .none, .dropped: SendingQuota.unlimitedRow
                case .paused: SendingQuota.noneRow
                case .limited(let limit): SendingQuota.noneRow + 1 + limit
                }
        }
    }

    /// Adopts other rates of the same limits.
    package mutating func adopt(rates: [Double], now: MonotonicTime) {
        precondition(rates.count == quotas.count - 2, "there is one rate for each limit")
        for (limit, rate) in rates.enumerated() {
            quotas[SendingQuota.noneRow + 1 + limit].adopt(rate: rate, now: now)
        }
    }

    /// So many pushes of a route with this quota go, or come back.
    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    mutating func spend(_ pushes: Int, of quota: Int) { quotas[quota].left -= pushes }

    /// Whether an operator drops the pushes of this route.
    package func isDropping(_ route: RouteID) -> Bool { routes[Int(route.rawValue)].isDropping }

    /// The pushes a second that the route may send; nil where nobody has limited it.
    package func limit(of route: RouteID) -> Double? {
        let quota = routes[Int(route.rawValue)].quota
        return quota > SendingQuota.noneRow ? quotas[quota].rate : nil
    }

    /// How many pushes the route's limit lets go now; nil where nobody has limited it.
    package func left(of route: RouteID) -> Int? {
        let quota = routes[Int(route.rawValue)].quota
        return quota > SendingQuota.noneRow ? quotas[quota].left : nil
    }

    /// Lets limits earn; called once a turn.
    package mutating func earnQuotas(now: MonotonicTime) {
        guard quotas.count > 2 else { return }
        for row in 2..<quotas.count { quotas[row].earn(now: now) }
    }

    /// When the first of the limits that let nothing go now lets a push go; `.distantFuture` if there
    /// is none.
    package var nextQuota: MonotonicTime {
        guard quotas.count > 2 else { return .distantFuture }
        return quotas.dropFirst(2).filter { $0.left <= 0 }.map(\.nextAt).min() ?? .distantFuture
    }
}
