// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// The state and the turns of a delivery thread that uses libcurl. The turns are those of
/// `NGHTTP2DeliveryLoop`; libcurl does everything below requests.
struct CurlDeliveryLoop: ~Copyable {
    var desk: DeliveryDesk
    let connections: ConnectionPlaces<CurlConnection>
    var request: CurlRequest

    /// The longest sleep while requests are in flight: libcurl 7.88 loses timers and wake-ups
    /// (fixed in 8.4.0, 8.7.0, 8.11.1).
    private static let tick = Duration.milliseconds(100)

    init(desk: consuming DeliveryDesk) {
        connections = desk.makePlaces()
        request = CurlRequest(plan: desk.plan)
        self.desk = desk
    }

    deinit { connections.deinitialize().deallocate() }

    /// Runs turns until the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            desk.beginTurn()
            handleEvents(woken)
            driveConnections()
            endRequests()
            desk.takeSubmissions()
            if desk.phase == .stopping { abandonEverything() }
            // Tokens come before connections are chosen: a new key retires those that have seen
            // another.
            if desk.phase == .running { desk.refreshTokens(for: connections) }
            keepDeadlines()
            connectWhereNeeded()
            dispatchAll()
            driveConnections()
            watchSockets()
            if desk.endTurn(with: connections) { return }
            woken = desk.sleep(until: nextDeadline())
        }
    }

    private mutating func handleEvents(_ count: Int) {
        for position in 0..<count {
            guard let event = desk.event(position) else { continue }
            let index = Int(event.tag >> 32)
            precondition(connections.indices.contains(index), "epoll names a place there is not")
            // The socket may have been closed since epoll reported it; libcurl ignores an unknown
            // one.
            connections[index].multi.ready(
                CInt(truncatingIfNeeded: event.tag), reads: event.isReadable,
                writes: event.isWritable)
            connections[index].progressAt = desk.now.monotonic
            connections[index].collectEnds(at: desk.now.monotonic)
        }
    }

    /// Calls libcurl for each connection whose timer is due or may have been lost.
    private mutating func driveConnections() {
        for index in connections.indices where connections[index].machine.requestsInFlight > 0 {
            connections[index].keepTimer(at: desk.now.monotonic)
            guard desk.now.monotonic - connections[index].progressAt >= .seconds(1) else {
                continue
            }
            connections[index].progressAt = desk.now.monotonic
            connections[index].multi.kick()
            connections[index].collectEnds(at: desk.now.monotonic)
        }
    }

    /// When the loop must look again even if nothing happens.
    private func nextDeadline() -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for index in connections.indices where !connections[index].isVacant {
            // Requests that ended while others were being sent are handled at once, to reuse their
            // places.
            if !connections[index].ends.isEmpty { return desk.now.monotonic }
            next = min(next, connections[index].machine.nextDeadline)
            guard connections[index].machine.requestsInFlight > 0 else { continue }
            next = min(next, connections[index].timerAt, desk.now.monotonic + Self.tick)
        }
        guard desk.phase == .running else { return next }
        for pool in desk.pools.indices
        where !desk.pools[pool].waiting.isEmpty
            && desk.pools[pool].connectAt > desk.now.monotonic
        {
            next = min(next, desk.pools[pool].connectAt)
        }
        return min(next, desk.nextGiveBack())
    }
}
