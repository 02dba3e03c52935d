// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// The life of connections and their sockets, and what time does to them and to the pushes that
/// wait for them.
extension CurlDeliveryLoop {
    /// Makes a place ready for a connection; libcurl connects when it gets the first request. One
    /// at a time for each pool: another follows when that one is in use and pushes still wait.
    mutating func connectWhereNeeded() {
        guard desk.phase == .running else { return }
        for pool in desk.pools.indices where !desk.pools[pool].waiting.isEmpty {
            guard desk.now.monotonic >= desk.pools[pool].connectAt else { continue }
            var wanted = 0
            var vacant: Int?
            var hasUnused = false
            for index in desk.pools[pool].places {
                if connections[index].machine.isWanted { wanted += 1 }
                if connections[index].machine.phase == .cold { hasUnused = true }
                if connections[index].isVacant { vacant = vacant ?? index }
            }
            guard !hasUnused, wanted < desk.pools[pool].sizing.wanted, let vacant else {
                continue
            }
            if let later = desk.budget.take(at: desk.now.monotonic) {
                desk.pools[pool].connectAt = later
                continue
            }
            connections[vacant].begin(
                limits: desk.pools[pool].settings.limits, at: desk.now.monotonic,
                jitter: Double(desk.random.next(below: 1001)) / 1000)
        }
    }

    mutating func keepDeadlines() {
        for index in connections.indices where !connections[index].isVacant {
            if desk.phase != .running || connections[index].machine.isOld(at: desk.now.monotonic) {
                connections[index].machine.retired()
            }
            // A connect under way may take long, and nothing that waits for it will be sent.
            if desk.phase != .running, !connections[index].multi.isEstablished { abandon(index) }
            if connections[index].machine.isDrained { connections[index].close() }
        }
        desk.giveBackWaiting()
    }

    /// The port is stopping: what is in flight gets its outcome now, as what waits does with its
    /// deadline.
    mutating func abandonEverything() {
        for index in connections.indices where !connections[index].isVacant { abandon(index) }
    }

    /// Gives up a connection with all that is in flight on it.
    mutating func abandon(_ index: Int) {
        let pool = connections[index].pool
        // Their ends are among the busy ones, since those are released with their end.
        _ = connections[index].takeEnds()
        for position in connections[index].busy {
            let slot = connections[index][position].pointee.tag
            let wasDispatched = connections[index][position].pointee.wasDispatched
            connections[index].release(position)
            desk.pools[pool].returned(1)
            if wasDispatched { desk.unknown(slot) } else { sendAgain(slot, pool: pool) }
        }
        connections[index].close()
    }

    /// Tells epoll what libcurl wants to hear of.
    mutating func watchSockets() {
        for index in connections.indices {
            while let change = connections[index].multi.nextSocketChange() {
                let descriptor = UInt32(bitPattern: change.descriptor)
                watch(change, tag: UInt64(index) << 32 | UInt64(descriptor))
            }
        }
    }

    /// Best effort in the end: a socket that epoll refuses for want of memory is served by kicks.
    private func watch(_ change: MultiHandle.SocketChange, tag: UInt64) {
        var interest: Epoll.Interest = change.reads ? .read : []
        if change.writes { interest.insert(.write) }
        guard !interest.isEmpty else {
            // Closed already, as often as not.
            try? desk.epoll.remove(change.descriptor)
            return
        }
        do {
            if change.isKnown {
                try desk.epoll.modify(change.descriptor, for: interest, tag: tag)
            } else {
                try desk.epoll.add(change.descriptor, for: interest, tag: tag)
            }
        } catch {
            // The number went from a closed socket to a new one, or was never let go.
            if change.isKnown {
                try? desk.epoll.add(change.descriptor, for: interest, tag: tag)
            } else {
                try? desk.epoll.modify(change.descriptor, for: interest, tag: tag)
            }
        }
    }
}
