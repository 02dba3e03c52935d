// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// The state and the turns of a delivery thread that uses libcurl. The turns are those of
/// `NGHTTP2DeliveryLoop`; libcurl does everything below requests.
struct CurlDeliveryLoop: ~Copyable {
    var core: DeliveryCore
    let connections: ConnectionTable<CurlConnection>
    var request: CurlRequest

    /// The longest sleep while requests are in flight: libcurl 7.88 loses timers and wake-ups
    /// (fixed in 8.4.0, 8.7.0, 8.11.1).
    private static let tick = Duration.milliseconds(100)

    init(core: consuming DeliveryCore) {
        connections = core.makeConnections()
        request = CurlRequest(plan: core.plan)
        self.core = core
    }

    deinit { connections.deinitialize().deallocate() }

    /// Runs turns until the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            core.beginTurn()
            handleEvents(woken)
            driveConnections()
            endRequests()
            core.takeSubmissions()
            if core.phase == .stopping { abandonEverything() }
            // Tokens come before connections are chosen: a new key retires those that have seen
            // another.
            if core.phase == .running { core.refreshTokens(for: connections) }
            keepDeadlines()
            connectWhereNeeded()
            dispatchAll()
            driveConnections()
            watchSockets()
            if core.endTurn(with: connections) { return }
            woken = core.sleep(until: nextDeadline())
        }
    }

    private mutating func handleEvents(_ count: Int) {
        for position in 0..<count {
            guard let event = core.event(position) else { continue }
            let index = Int(event.tag >> 32)
            precondition(
                connections.indices.contains(index), "epoll names only connections that there are")
            // The socket may have been closed since epoll reported it; libcurl ignores an unknown
            // one.
            connections[index].multi.ready(
                CInt(truncatingIfNeeded: event.tag), reads: event.isReadable,
                writes: event.isWritable)
            connections[index].progressAt = core.now.monotonic
            connections[index].collectEnds(at: core.now.monotonic)
        }
    }

    /// Calls libcurl for each connection whose timer is due or may have been lost.
    private mutating func driveConnections() {
        for index in connections.indices where connections[index].machine.requestsInFlight > 0 {
            connections[index].keepTimer(at: core.now.monotonic)
            guard core.now.monotonic - connections[index].progressAt >= .seconds(1) else {
                continue
            }
            connections[index].progressAt = core.now.monotonic
            connections[index].multi.kick()
            connections[index].collectEnds(at: core.now.monotonic)
        }
    }

    /// When the loop must look again even if nothing happens.
    private func nextDeadline() -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for index in connections.indices where !connections[index].isVacant {
            // Requests that ended while others were being sent are handled at once, to reuse their
            // places.
            if !connections[index].ends.isEmpty { return core.now.monotonic }
            next = min(next, connections[index].machine.nextDeadline)
            guard connections[index].machine.requestsInFlight > 0 else { continue }
            next = min(next, connections[index].timerAt, core.now.monotonic + Self.tick)
        }
        guard core.phase == .running else { return next }
        for pool in core.pools.indices
        where !core.pools[pool].waiting.isEmpty
            && core.pools[pool].connectAt > core.now.monotonic
        {
            next = min(next, core.pools[pool].connectAt)
        }
        return min(next, core.nextGiveBack())
    }
}
