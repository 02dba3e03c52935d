// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

/// How a transport must run one pool of connections; the same for both transports.
package struct PoolSettings: Sendable {
    package var id: PoolID
    /// The host to connect to. Its name is resolved for each connection.
    package var host: String
    package var port: UInt16
    /// Sent as SNI and `:authority`, and verified against the certificate; `host` by default.
    package var serverName: String
    /// The PEM file of trusted roots; nil means the system's.
    package var caFile: String?
    /// The URL of the HTTP proxy that libcurl tunnels through; nil for none. What `HTTPProxy`
    /// accepts: `http://user:password@host:port`, user and password percent-encoded.
    /// The nghttp2 transport ignores it.
    package var proxy: Secret?
    /// The fewest and the most connections of this pool on this thread: it has the fewest while
    /// there is something to send, and more when their streams are too few.
    package var connections: ClosedRange<Int>
    /// The source of this pool's provider tokens, shared by every thread.
    package var providerTokens: ProviderTokens
    package var limits: ConnectionLimits
    /// Whether the pool carries broadcasts to channels, and not pushes to devices.
    package var isForBroadcasts = false

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

/// What a transport delivers: the routes, each with its `apns-topic`, and the pools that carry
/// them.
package struct DeliveryPlan: Sendable {
    package var routing: RoutingTable
    package var pools: [PoolSettings]

    package init(routing: RoutingTable, pools: [PoolSettings]) {
        self.routing = routing
        self.pools = pools
    }
}
