// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import PushModel

/// The state of one delivery thread of libcurl's, and its turns: the same as `DeliveryLoop`'s, with
/// libcurl to do what lies below requests.
struct CurlDeliveryLoop: ~Copyable {
    var desk: DeliveryDesk
    let connections: ConnectionPlaces<CurlConnection>
    var request: CurlRequest

    /// libcurl 7.88 loses timers and wake-ups (fixed in 8.4.0, 8.7.0, 8.11.1), so with requests in
    /// flight it is asked at least this often.
    private static let tick = Duration.milliseconds(100)

    init(desk: consuming DeliveryDesk) {
        connections = desk.makePlaces()
        request = CurlRequest(plan: desk.plan)
        self.desk = desk
    }

    deinit { connections.deinitialize().deallocate() }

    /// Returns when the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            desk.beginTurn()
            handleEvents(woken)
            driveConnections()
            endRequests()
            desk.takeSubmissions()
            if desk.phase == .stopping { abandonEverything() }
            // Before the choice of connections: a new key retires those that have seen another.
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
            // A socket that was closed since, here or earlier in this loop, is unknown to libcurl,
            // which takes no notice.
            connections[index].multi.ready(
                CInt(truncatingIfNeeded: event.tag), reads: event.isReadable,
                writes: event.isWritable)
            connections[index].progressAt = desk.now.monotonic
            connections[index].collectEnds(at: desk.now.monotonic)
        }
    }

    /// Calls libcurl where its timer is due, and where it may have lost one.
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
            // Ends that the dispatch brought are handled, and their places filled, at once.
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
