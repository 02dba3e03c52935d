// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Nghttp2
internal import PushModel

/// What time does: requests, connections and waiting pushes that are overdue, and the end.
extension DeliveryLoop {
    mutating func keepDeadlines() {
        for index in connections.indices where connections[index].stage != .vacant {
            if connections[index].stage == .established { timeOutRequests(index) }
            switch connections[index].machine.due(at: now.monotonic) {
            case .nothing: break
            case .retire: connections[index].machine.retired()
            case .abort(let reason): lost(index, reason.rawValue)
            }
        }
        for pool in pools.indices where !pools[pool].waiting.isEmpty {
            if phase != .running {
                giveBackWaiting(pool: pool, all: true)
            } else if !hasOpenConnection(pool) {
                giveBackWaiting(pool: pool, all: false)
            }
        }
    }

    /// Requests are in flight in the order they were sent, so only the first is looked at.
    private mutating func timeOutRequests(_ index: Int) {
        let pool = connections[index].pool
        let limit = now.monotonic - pools[pool].settings.limits.requestTimeout
        while !connections[index].inFlight.isEmpty {
            let slot = connections[index].inFlight.first
            let sentAt = table.places[Int(slot)].since
            guard sentAt <= limit else { return }
            connections[index].inFlight.remove(slot, table.places)
            connections[index].link!.session.abandon(table.streams + Int(slot))
            connections[index].machine.streamTimedOut()
            pools[pool].inFlight &-= 1
            counts.timeouts &+= 1
            outcomes.append(PushOutcome(slot: slot, kind: .unknown, sentAt: sentAt))
        }
    }

    private func hasOpenConnection(_ pool: Int) -> Bool {
        for index in pools[pool].places {
            switch connections[index].machine.phase {
            case .warming, .open: return true
            case .connecting, .settingsAwaited, .draining, .closed: break
            }
        }
        return false
    }

    /// The end of the turn: writes what is left, watches for room where there is none, and closes
    /// connections that have nothing more to do.
    mutating func settleConnections() {
        for index in connections.indices where connections[index].stage != .vacant {
            if phase != .running { connections[index].machine.retired() }
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
            next = min(next, connections[index].machine.nextDeadline)
            guard !connections[index].inFlight.isEmpty else { continue }
            let oldest = table.places[Int(connections[index].inFlight.first)].since
            let pool = connections[index].pool
            next = min(next, oldest + pools[pool].settings.limits.requestTimeout)
        }
        guard phase == .running else { return next }
        for pool in pools.indices {
            if pools[pool].connectAt > now.monotonic,
                pools[pool].wantsConnections(at: now.monotonic)
            {
                next = min(next, pools[pool].connectAt)
            }
            guard !pools[pool].waiting.isEmpty, !hasOpenConnection(pool) else { continue }
            let oldest = table.places[Int(pools[pool].waiting.first)].since
            next = min(next, oldest + pools[pool].settings.limits.waitMax)
        }
        return next
    }

    /// The port is stopping: every push gets its outcome now.
    mutating func abandonEverything() {
        for pool in pools.indices { giveBackWaiting(pool: pool, all: true) }
        for index in connections.indices where connections[index].stage != .vacant {
            while let slot = connections[index].inFlight.popFirst(table.places) {
                pools[connections[index].pool].inFlight &-= 1
                connections[index].link!.session.abandon(table.streams + Int(slot))
                outcomes.append(
                    PushOutcome(
                        slot: slot, kind: .unknown, sentAt: table.places[Int(slot)].since))
            }
            leave(index)
        }
    }
}
