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
                core.now.monotonic >= connections[index].nextAddressAt
            {
                addressIsLate(index)
            }
            switch connections[index].machine.due(at: core.now.monotonic) {
            case .nothing: break
            case .ping: ping(index)
            case .retire: connections[index].machine.retired()
            case .abort(let reason): lost(index, reason.rawValue)
            }
        }
        core.giveBackWaiting()
    }

    mutating func ping(_ index: Int) {
        assert(
            connections[index].stage == .established,
            "a PING is sent only on an established connection")
        connections[index].link!.session.ping()
        connections[index].machine.pingSent(at: core.now.monotonic)
    }

    /// Gives requests without an answer in time their outcome. They are listed in the order they
    /// were sent, so only the first has to be checked.
    private mutating func timeOutRequests(_ index: Int) {
        let pool = connections[index].pool
        let limit = core.now.monotonic - core.pools[pool].settings.limits.requestTimeout
        while !connections[index].inFlight.isEmpty {
            let slot = connections[index].inFlight.first
            guard core.states[Int(slot)].since <= limit else { return }
            connections[index].inFlight.remove(slot, core.states)
            connections[index].link!.session.abandon(streams + Int(slot))
            connections[index].machine.streamTimedOut()
            core.pools[pool].returned(1)
            core.counts.timeouts &+= 1
            leftOpen(slot, index)
        }
    }

    /// Ends the turn: writes what is left, watches sockets that take no more bytes, and closes
    /// connections that have nothing more to do.
    mutating func endTurn() {
        for index in connections.indices where connections[index].stage != .vacant {
            if core.phase != .running { connections[index].machine.retired() }
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
            if connections[index].hasMoreToRead { return core.now.monotonic }
            next = min(next, connections[index].machine.nextDeadline)
            if connections[index].stage == .connecting {
                next = min(next, connections[index].nextAddressAt)
            }
            guard !connections[index].inFlight.isEmpty else { continue }
            let oldest = core.states[Int(connections[index].inFlight.first)].since
            let pool = connections[index].pool
            next = min(next, oldest + core.pools[pool].settings.limits.requestTimeout)
        }
        guard core.phase == .running else { return next }
        for pool in core.pools.indices
        where core.pools[pool].connectAt > core.now.monotonic
            && core.pools[pool].wantsConnections(at: core.now.monotonic)
        {
            next = min(next, core.pools[pool].connectAt)
        }
        return min(next, core.nextGiveBack())
    }

    /// Gives every push in flight its outcome at once, because the port is stopping. Waiting pushes
    /// get theirs from `giveBackWaiting`.
    mutating func abandonEverything() {
        for index in connections.indices where connections[index].stage != .vacant {
            while let slot = connections[index].inFlight.popFirst(core.states) {
                core.pools[connections[index].pool].returned(1)
                connections[index].link!.session.abandon(streams + Int(slot))
                leftOpen(slot, index)
            }
            leave(index)
        }
    }
}
