// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import Synchronization

/// Counts each peer's connections and requests, so that a single one can neither take all places of
/// a listener nor keep its thread busy.
final class PeerShares: Sendable {
    private struct Peer {
        var connections = 0
        /// Each request moves this on by its share of a second.
        var paidUntil: NIODeadline
    }

    private let peers = Mutex<[String: Peer]>([:])
    private let connectionsMax: Int
    private let interval: Duration
    private let burst: Int

    /// How many peers are remembered for what they have asked after their last connection has ended.
    static let rememberedMax = 1024
    /// So that a peer that has asked and left again and again is answered before it gives up.
    static let waitMax = Duration.seconds(2)

    init(_ limits: HTTPListenerSettings.Limits) {
        connectionsMax = limits.connectionsPerPeerMax
        burst = limits.requestsPerSecondMax ?? 0
        interval = burst > 0 ? .seconds(1) / burst : .zero
    }

    var remembered: Int { peers.withLock(\.count) }

    /// - Returns: false if the peer has all of its share already.
    func take(for name: String, now: NIODeadline) -> Bool {
        peers.withLock { peers in
            if peers.count >= Self.rememberedMax, peers[name] == nil {
                peers = peers.filter { $0.value.connections > 0 }
            }
            var peer = peers[name] ?? Peer(paidUntil: now)
            guard peer.connections < connectionsMax else { return false }
            peer.connections += 1
            peers[name] = peer
            return true
        }
    }

    func giveBack(of name: String) { peers.withLock { $0[name]?.connections -= 1 } }

    /// How long the next request of this peer, which has just come, is to wait: not at all for those
    /// of a burst, and then so that a second has so many.
    func wait(of name: String, now: NIODeadline) -> Duration {
        guard burst > 0 else { return .zero }
        return peers.withLock { peers in
            guard var peer = peers[name] else { return .zero }
            let ahead = Duration(max(peer.paidUntil, now) - now) + interval
            let wait = ahead - interval * burst
            // A request that waits as long as may be is not charged: its connection is bound by it.
            peer.paidUntil = now + TimeAmount(min(ahead, interval * burst + Self.waitMax))
            peers[name] = peer
            return max(.zero, min(wait, Self.waitMax))
        }
    }
}
