// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a listener's owner says to a request of which it has seen the head alone.
package enum HTTPAdmission: Sendable {
    /// It is answered so, and its body is not read.
    case refused(HTTPAnswer)
    /// Its body may be read.
    case admitted(HTTPAdmitted)
}

package struct HTTPAdmitted: Sendable {
    /// Who asks, by whom memory is shared; empty for somebody who has not shown it.
    package var caller: String
    /// Another replica asks, for this caller of its own.
    package var isReplica: Bool
    /// One device asks, for itself alone.
    package var isDevice: Bool
    /// A longer body is refused.
    package var bodyBytesMax: Int
    /// What was found, for `HTTPRequest.admitted`.
    package var finding: any Sendable

    package init(
        caller: String, isReplica: Bool = false, isDevice: Bool = false, bodyBytesMax: Int,
        finding: any Sendable
    ) {
        self.isDevice = isDevice
        self.caller = caller
        self.isReplica = isReplica
        self.bodyBytesMax = bodyBytesMax
        self.finding = finding
    }
}

/// Decides on requests by their heads, and bounds what all connections take together.
struct ListenerAdmission: Sendable {
    let decide: @Sendable (HTTPRequest) -> HTTPAdmission
    let connections: OpenConnections
    let budget: BodyBudget
    let drains: DrainedBytes
    let proxies: TrustedProxies
    /// Is told of each request that is answered by its head alone.
    let refused: (@Sendable (_ method: String, _ status: Int) -> Void)?

    init(
        _ decide: @escaping @Sendable (HTTPRequest) -> HTTPAdmission,
        _ limits: HTTPListenerSettings.Limits, proxies: TrustedProxies,
        refused: (@Sendable (_ method: String, _ status: Int) -> Void)?
    ) {
        self.decide = decide
        self.proxies = proxies
        self.refused = refused
        connections = OpenConnections(
            connectionsMax: limits.connectionsMax,
            strangersMax: max(1, limits.connectionsMax / 8), unreadMax: limits.unreadBytesMax)
        budget = BodyBudget(bytes: limits.bodyBytesOfAllMax)
        drains = DrainedBytes()
    }
}
