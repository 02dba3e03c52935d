// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// Which tokens are left to another sender, by the rollouts in force.
struct Rollouts {
    /// By `AppID`; nil for an app whose tokens are all sent to.
    private var ofApps: [Rollout?]
    /// Asked for each push, where a look at an array would cost more.
    private(set) var isAny = false

    init(apps: Int) { ofApps = Array(repeating: nil, count: apps) }

    mutating func adopt(
        _ inForce: [Restriction.Scope: Restriction], _ routing: RoutingTable
    ) {
        ofApps = routing.apps.map { inForce[.rollout(app: $0)]?.action.rollout }
        isAny = ofApps.contains { $0 != nil }
    }

    /// - Parameter times: when the event may have been written.
    func leavesToOther(
        _ token: UnsafeRawBufferPointer, of route: PipelineState.RouteTraits,
        writtenIn times: ClosedRange<WallTime>
    ) -> Bool {
        guard let rollout = ofApps[Int(route.app.rawValue)],
            rollout.classes.contains(route.tokenClass)
        else { return false }
        return !rollout.includes(SHA256Digest.prefix(of: token), writtenIn: times)
    }
}
