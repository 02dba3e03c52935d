// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// The life cycle of connections and their sockets, and the deadlines of connections and of waiting
/// pushes.
extension CurlDeliveryLoop {
    /// Prepares a vacant entry for a connection; libcurl connects when it gets the first request. Each
    /// pool prepares one at a time: the next follows when that one is in use and pushes still wait.
    mutating func connectWhereNeeded() {
        guard core.phase == .running else { return }
        for pool in core.pools.indices where !core.pools[pool].waiting.isEmpty {
            guard core.now.monotonic >= core.pools[pool].connectAt else { continue }
            var wanted = 0
            var vacant: Int?
            var hasUnused = false
            for index in core.pools[pool].connections {
                if connections[index].machine.isWanted { wanted += 1 }
                if connections[index].machine.phase == .cold { hasUnused = true }
                if connections[index].isVacant { vacant = vacant ?? index }
            }
            guard !hasUnused, wanted < core.pools[pool].sizing.wanted, let vacant else {
                continue
            }
            if let later = core.budget.take(at: core.now.monotonic) {
                core.pools[pool].connectAt = later
                continue
            }
            let health = core.presumption(ofPool: pool, connections)
            connections[vacant].begin(
                limits: core.pools[pool].settings.limits, at: core.now.monotonic,
                jitter: Double(core.random.next(below: 1001)) / 1000)
            connections[vacant].health = health
        }
    }

    mutating func keepDeadlines() {
        for index in connections.indices where !connections[index].isVacant {
            if core.phase != .running || connections[index].machine.isOld(at: core.now.monotonic) {
                connections[index].machine.retired()
            }
            // A connect under way may take long, and the requests that wait for it will not be
            // sent.
            if core.phase != .running, !connections[index].multi.isEstablished { abandon(index) }
            if connections[index].machine.isDrained { connections[index].close() }
        }
        core.giveBackWaiting()
    }

    /// Gives every request in flight its outcome at once, because the port is stopping. Waiting
    /// pushes get theirs from `giveBackWaiting`.
    mutating func abandonEverything() {
        for index in connections.indices where !connections[index].isVacant { abandon(index) }
    }

    /// Closes a connection and gives each request on it its outcome.
    mutating func abandon(_ index: Int) {
        let pool = connections[index].pool
        // The ended requests are among the busy ones: a request is released when its end is
        // handled.
        _ = connections[index].takeEnds()
        for position in connections[index].busy {
            let slot = connections[index][position].pointee.tag
            let wasDispatched = connections[index][position].pointee.wasDispatched
            connections[index].release(position)
            core.pools[pool].returned(1)
            if wasDispatched {
                let isOutlier = core.failed(.fault, slot, on: index, of: connections)
                core.unknown(slot, isOutlier: isOutlier)
            } else {
                sendAgain(slot, pool: pool)
            }
        }
        connections[index].close()
    }

    /// Registers with epoll the socket events that libcurl wants.
    mutating func watchSockets() {
        for index in connections.indices {
            while let change = connections[index].multi.nextSocketChange() {
                let descriptor = UInt32(bitPattern: change.descriptor)
                watch(change, tag: UInt64(index) << 32 | UInt64(descriptor))
            }
        }
    }

    /// Watches or unwatches one socket. If epoll refuses it for lack of memory, `driveConnections`
    /// still serves it, by kicking libcurl every second.
    private func watch(_ change: MultiHandle.SocketChange, tag: UInt64) {
        var interest: Epoll.Interest = change.reads ? .read : []
        if change.writes { interest.insert(.write) }
        guard !interest.isEmpty else {
            // The socket is often closed already.
            try? core.epoll.remove(change.descriptor)
            return
        }
        do {
            if change.isKnown {
                try core.epoll.modify(change.descriptor, for: interest, tag: tag)
            } else {
                try core.epoll.add(change.descriptor, for: interest, tag: tag)
            }
        } catch {
            // The descriptor's number passed from a closed socket to a new one, or epoll still has
            // it.
            if change.isKnown {
                try? core.epoll.add(change.descriptor, for: interest, tag: tag)
            } else {
                try? core.epoll.modify(change.descriptor, for: interest, tag: tag)
            }
        }
    }
}
