// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

/// One pool of connections as a transport is told to run it. The same for both transports.
package struct PoolSettings: Sendable {
    package var id: PoolID
    /// Where to connect. Resolved anew for each connection.
    package var host: String
    package var port: UInt16
    /// Sent as SNI and `:authority`, and verified against the certificate; `host` by default.
    package var serverName: String
    /// PEM file of trusted roots; nil means the system's.
    package var caFile: String?
    /// The HTTP proxy that libcurl tunnels through, `http://user:password@host:port` with both
    /// percent-encoded, which `CurlTransport.understands`; nil for none. The nghttp2 transport has no
    /// use for it.
    package var proxy: Secret?
    /// Connections of this pool on this thread: the fewest while there is something to send, and
    /// the most when their streams are too few for it.
    package var connections: ClosedRange<Int>
    /// Signs for the (team, key) of this pool; shared by every thread and both environments.
    package var providerTokens: ProviderTokens
    package var limits: ConnectionLimits

    package init(
        id: PoolID, host: String, port: UInt16 = 443, serverName: String? = nil,
        caFile: String? = nil, connections: ClosedRange<Int> = 1...1,
        providerTokens: ProviderTokens,
        limits: ConnectionLimits = ConnectionLimits()
    ) {
        self.id = id
        self.host = host
        self.port = port
        self.serverName = serverName ?? host
        self.caFile = caFile
        self.connections = connections
        self.providerTokens = providerTokens
        self.limits = limits
    }
}

/// A route as a transport needs it: what goes into `apns-topic`, and which pool carries it.
package struct DeliveryPlan: Sendable {
    package var routing: RoutingTable
    package var pools: [PoolSettings]

    package init(routing: RoutingTable, pools: [PoolSettings]) {
        self.routing = routing
        self.pools = pools
    }
}
