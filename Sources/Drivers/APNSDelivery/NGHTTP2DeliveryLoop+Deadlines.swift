// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Nghttp2
internal import PushModel

/// Enforces the deadlines of requests, connections and waiting pushes, and ends turns.
extension NGHTTP2DeliveryLoop {
    mutating func keepDeadlines() {
        for index in connections.indices where connections[index].stage != .vacant {
            if connections[index].stage == .established { timeOutRequests(index) }
            if connections[index].stage == .connecting,
                desk.now.monotonic >= connections[index].nextAddressAt
            {
                addressIsLate(index)
            }
            switch connections[index].machine.due(at: desk.now.monotonic) {
            case .nothing: break
            case .ping: ping(index)
            case .retire: connections[index].machine.retired()
            case .abort(let reason): lost(index, reason.rawValue)
            }
        }
        desk.giveBackWaiting()
    }

    mutating func ping(_ index: Int) {
        assert(connections[index].stage == .established, "a PING before there is HTTP/2")
        connections[index].link!.session.ping()
        connections[index].machine.pingSent(at: desk.now.monotonic)
    }

    /// Gives requests without an answer in time their outcome. They are listed in the order they
    /// were sent, so only the first has to be checked.
    private mutating func timeOutRequests(_ index: Int) {
        let pool = connections[index].pool
        let limit = desk.now.monotonic - desk.pools[pool].settings.limits.requestTimeout
        while !connections[index].inFlight.isEmpty {
            let slot = connections[index].inFlight.first
            guard desk.places[Int(slot)].since <= limit else { return }
            connections[index].inFlight.remove(slot, desk.places)
            connections[index].link!.session.abandon(streams + Int(slot))
            connections[index].machine.streamTimedOut()
            desk.pools[pool].returned(1)
            desk.counts.timeouts &+= 1
            leftOpen(slot, index)
        }
    }

    /// Ends the turn: writes what is left, watches sockets that take no more bytes, and closes
    /// connections that have nothing more to do.
    mutating func endTurn() {
        for index in connections.indices where connections[index].stage != .vacant {
            if desk.phase != .running { connections[index].machine.retired() }
            if connections[index].stage == .established {
                flush(index, partly: true)
                guard connections[index].stage == .established else { continue }
                watch(index, for: connections[index].isBlocked ? [.read, .write] : .read)
            }
            if connections[index].machine.isDrained {
                leave(index)
            } else if connections[index].hasFinished {
                lost(index, "the peer broke the HTTP/2 protocol")
            }
        }
    }

    /// When the loop must look again even if nothing happens.
    func nextDeadline() -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for index in connections.indices where connections[index].stage != .vacant {
            if connections[index].hasMoreToRead { return desk.now.monotonic }
            next = min(next, connections[index].machine.nextDeadline)
            if connections[index].stage == .connecting {
                next = min(next, connections[index].nextAddressAt)
            }
            guard !connections[index].inFlight.isEmpty else { continue }
            let oldest = desk.places[Int(connections[index].inFlight.first)].since
            let pool = connections[index].pool
            next = min(next, oldest + desk.pools[pool].settings.limits.requestTimeout)
        }
        guard desk.phase == .running else { return next }
        for pool in desk.pools.indices
        where desk.pools[pool].connectAt > desk.now.monotonic
            && desk.pools[pool].wantsConnections(at: desk.now.monotonic)
        {
            next = min(next, desk.pools[pool].connectAt)
        }
        return min(next, desk.nextGiveBack())
    }

    /// Gives every push in flight its outcome at once, because the port is stopping. Waiting pushes
    /// get theirs from `giveBackWaiting`.
    mutating func abandonEverything() {
        for index in connections.indices where connections[index].stage != .vacant {
            while let slot = connections[index].inFlight.popFirst(desk.places) {
                desk.pools[connections[index].pool].returned(1)
                connections[index].link!.session.abandon(streams + Int(slot))
                leftOpen(slot, index)
            }
            leave(index)
        }
    }
}
