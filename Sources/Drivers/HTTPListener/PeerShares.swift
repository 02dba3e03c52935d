// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import NIOCore
internal import Synchronization

/// Counts each peer's connections and requests and those of all, so that neither a single peer nor
/// one of many addresses can take all places of a listener or keep its thread busy.
final class PeerShares: Sendable {
    private struct Peer {
        var connections = 0
        var rate: RateLimit
        let firstSeen: NIODeadline
        var lastSeen: NIODeadline
        /// Until when it counts as one that asks too much.
        var isExcessiveUntil: NIODeadline
        /// Until when it counts as one whose connections show nobody.
        var isDoubtfulUntil = NIODeadline.uptimeNanoseconds(0)

        /// Whether it has come for some time, and has not asked too much lately, as a probe does.
        func isRegular(now: NIODeadline) -> Bool {
            isExcessiveUntil <= now && now - firstSeen >= PeerShares.regularAfter
        }
    }

    /// How far ahead of its time somebody has asked.
    private struct RateLimit {
        /// Each request moves this on by its share of a second.
        var paidUntil: NIODeadline

        func ahead(now: NIODeadline) -> Duration { Duration(max(paidUntil, now) - now) }

        /// How long the next request is to wait: not at all for those of a second at once.
        mutating func wait(_ interval: Duration, now: NIODeadline) -> Duration {
            let ahead = ahead(now: now) + interval
            // A request that waits as long as may be is not charged: its connection is bound by it.
            paidUntil = now + TimeAmount(min(ahead, .seconds(1) + PeerShares.waitMax))
            return max(.zero, min(ahead - .seconds(1), PeerShares.waitMax))
        }
    }

    private struct Everybody {
        /// Those that have a connection, or had one.
        var peers: [String: Peer] = [:]
        /// Those that were only ever refused: a probe that first comes during a flood is remembered,
        /// too. They have places of their own, so that a flood that is refused makes the listener
        /// forget none of the others.
        var refused: [String: Peer] = [:]
        /// When those that have not come again were last forgotten.
        var lookedAt = NIODeadline.uptimeNanoseconds(0)
        var connections = 0
        var rate = RateLimit(paidUntil: .uptimeNanoseconds(0))
    }

    private let everybody = Mutex(Everybody())
    private let connectionsPerPeerMax: Int
    /// Beyond it only regular peers find a place.
    private let connectionsOfAnybodyMax: Int
    /// A request's share of a second; nil where requests do not wait.
    private let interval: Duration?

    /// How many peers are remembered, those included that have no connection any more; at least twice as many
    /// as there can be connections.
    let rememberedMax: Int
    /// How many are remembered that were only ever refused. Where more come, each has its chance as
    /// others stay away: nobody's place is taken, or of a flood nobody would stay for ten seconds.
    static let refusedMax = 4096
    /// After it one that was refused and has not come again is forgotten: two tries of a kubelet, and
    /// some time.
    static let refusedFor = TimeAmount.seconds(25)
    /// So that a peer that has asked and left again and again is answered before it gives up.
    static let waitMax = Duration.seconds(2)
    /// The listener answers as many addresses at full rate.
    static let fullRates = 5
    /// A kubelet asks every ten seconds.
    static let regularAfter = TimeAmount.seconds(10)
    /// Connections of one regular peer that may take a place kept free of others.
    static let regularConnectionsMax = 2

    init(_ limits: HTTPListenerSettings.Limits) {
        connectionsPerPeerMax = limits.connectionsPerPeerMax
        // Where one address may have all, as a proxy before a registrar, none are kept.
        let kept = connectionsPerPeerMax < limits.connectionsMax ? limits.connectionsMax / 8 : 0
        // Without any, those beyond the listener's bound wait in the system's queue.
        connectionsOfAnybodyMax = kept > 0 ? limits.connectionsMax - kept : .max
        interval = limits.requestsPerSecondMax.map { .seconds(1) / $0 }
        rememberedMax = max(1024, 2 * limits.connectionsMax)
    }

    var remembered: Int { everybody.withLock { $0.peers.count + $0.refused.count } }

    /// The name of who is at this IP address. A host has a whole /64 of IPv6 addresses to choose
    /// from.
    static func name(of ipAddress: String?) -> String {
        guard let text = ipAddress, text.contains(":") else { return ipAddress ?? "" }
        var binary = in6_addr()
        guard inet_pton(AF_INET6, text, &binary) == 1 else { return text }
        let bytes = withUnsafeBytes(of: binary) { Array($0) }
        // IPv4 on a socket of both.
        if bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] {
            return bytes.suffix(4).map { "\($0)" }.joined(separator: ".")
        }
        return bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ":") + "/64"
    }

    /// - Returns: false if the peer has all of its share already, or the listener is at its bounds and
    ///   the peer is not a regular one.
    func take(for name: String, now: NIODeadline) -> Bool {
        everybody.withLock { everybody in
            let refused = everybody.refused[name].flatMap { peer in
                now - peer.lastSeen < Self.refusedFor ? peer : nil
            }
            var peer =
                everybody.peers[name] ?? refused
                ?? Peer(
                    rate: RateLimit(paidUntil: now), firstSeen: now, lastSeen: now,
                    isExcessiveUntil: now)
            guard peer.connections < connectionsPerPeerMax else { return false }
            let isPreferred =
                peer.isRegular(now: now) && peer.connections < Self.regularConnectionsMax
            guard isPreferred || hasRoom(everybody, now: now) else {
                remember(refused: peer, as: name, &everybody, now: now)
                return false
            }
            if everybody.peers[name] == nil {
                everybody.refused[name] = nil
                forget(&everybody.peers, now: now)
            }
            peer.connections += 1
            peer.lastSeen = now
            everybody.peers[name] = peer
            everybody.connections += 1
            return true
        }
    }

    /// Keeps when it has come, so that it counts as regular if it goes on as a probe does.
    private func remember(
        refused peer: Peer, as name: String, _ everybody: inout Everybody, now: NIODeadline
    ) {
        var peer = peer
        peer.lastSeen = now
        // One that tries again and again asks too much, though it is never answered.
        if let interval, peer.rate.wait(interval, now: now) > .zero {
            peer.isExcessiveUntil = now + Self.regularAfter
        }
        if everybody.peers[name] != nil {
            everybody.peers[name] = peer
        } else if everybody.refused[name] != nil || Self.hasRoom(&everybody, now: now) {
            everybody.refused[name] = peer
        }
    }

    /// Whether one more can be remembered that was refused.
    private static func hasRoom(_ everybody: inout Everybody, now: NIODeadline) -> Bool {
        if everybody.refused.count < refusedMax { return true }
        // A flood must not have all of them looked at for each of its connections.
        guard now - everybody.lookedAt >= .seconds(1) else { return false }
        everybody.lookedAt = now
        everybody.refused = everybody.refused.filter { now - $0.value.lastSeen < refusedFor }
        return everybody.refused.count < refusedMax
    }

    private func hasRoom(_ everybody: Everybody, now: NIODeadline) -> Bool {
        everybody.connections < connectionsOfAnybodyMax
            && (interval == nil || everybody.rate.ahead(now: now) < .seconds(1))
    }

    /// - Parameter isStrangers: whether nobody has shown on the connection who they are.
    func giveBack(of name: String, isStrangers: Bool = false, now: NIODeadline = .now()) {
        everybody.withLock { everybody in
            everybody.peers[name]?.connections -= 1
            everybody.connections -= 1
            if isStrangers { everybody.peers[name]?.isDoubtfulUntil = now + Self.doubtfulFor }
        }
    }

    /// Whether a stranger's connection from there has ended lately.
    func isDoubtful(_ name: String, now: NIODeadline) -> Bool {
        everybody.withLock { $0.peers[name].map { now < $0.isDoubtfulUntil } ?? false }
    }

    private static let doubtfulFor = TimeAmount.seconds(10)

    /// Makes room for another peer. Those that have come again and again are forgotten last.
    private func forget(_ peers: inout [String: Peer], now: NIODeadline) {
        guard peers.count >= rememberedMax else { return }
        peers = peers.filter {
            $0.value.connections > 0 || now < $0.value.isDoubtfulUntil
                || $0.value.lastSeen - $0.value.firstSeen >= Self.regularAfter
        }
        if peers.count >= rememberedMax { peers = peers.filter { $0.value.connections > 0 } }
    }

    /// How long the next request of this peer, which has just come, is to wait: not at all for those
    /// of a burst, and then so that a second has so many, of the peer and of all.
    func wait(of name: String, now: NIODeadline) -> Duration {
        guard let interval else { return .zero }
        return everybody.withLock { everybody in
            guard var peer = everybody.peers[name] else { return .zero }
            let isRegular = peer.isRegular(now: now)
            let own = peer.rate.wait(interval, now: now)
            if own > .zero { peer.isExcessiveUntil = now + Self.regularAfter }
            peer.lastSeen = now
            everybody.peers[name] = peer
            let ofAll = everybody.rate.wait(interval / Self.fullRates, now: now)
            return isRegular ? own : max(own, ofAll)
        }
    }
}
