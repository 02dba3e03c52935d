// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Nghttp2
internal import PushModel

/// The loop of one delivery thread with nghttp2; `CurlDeliveryLoop` is the one with libcurl. What
/// both do alike is in `DeliveryCore`. `NGHTTP2Transport` runs it.
///
/// A turn reads answers, takes pushes from the `DeliveryPort`, sends them, keeps the deadlines,
/// hands back outcomes and sleeps. One clock reading per turn; no allocation, lock or log line per
/// push.
struct NGHTTP2DeliveryLoop: ~Copyable {
    var core: DeliveryCore
    let connections: ConnectionTable<PushConnection>
    /// The HTTP/2 stream of each push: one for each slot of the slab.
    let streams: UnsafeMutablePointer<ClientStream>
    let input: UnsafeMutableRawBufferPointer
    let resolver: Resolver
    let constants: RequestConstants
    /// Look-ups that the resolver has not answered yet.
    var lookupsOwed = 0

    init(core: consuming DeliveryCore, lookUp: @escaping Resolver.LookUp) {
        resolver = Resolver(waker: core.port.deliveryWaker, lookUp: lookUp)
        constants = RequestConstants(plan: core.plan)
        connections = core.makeConnections()
        streams = .allocate(capacity: core.slab.slots)
        streams.initialize(
            repeating: ClientStream(tag: 0, body: nil, bodyBytes: 0), count: core.slab.slots)
        // SSL_read returns at most one TLS record.
        input = .allocate(byteCount: 16_384, alignment: 64)
        self.core = core
    }

    deinit {
        connections.deinitialize().deallocate()
        streams.deallocate()
        input.deallocate()
    }

    /// Runs turns until the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            core.beginTurn()
            handleEvents(woken)
            core.takeSubmissions()
            if core.phase == .stopping { abandonEverything() }
            keepDeadlines()
            dispatchAll()
            // Ended connections come first: one that was never authenticated delays its successor.
            endTurn()
            connectWhereNeeded()
            if core.endTurn(with: connections) { return }
            woken = core.sleep(until: nextDeadline())
        }
    }

    private mutating func handleEvents(_ count: Int) {
        for position in 0..<count {
            if let event = core.event(position) { ready(Int(event.tag), event) }
        }
        // The resolver is asked while a look-up is open: its wake-up may have been consumed
        // already.
        if lookupsOwed > 0 {
            for answer in resolver.collect() { resolved(answer) }
        }
        for index in connections.indices where connections[index].hasMoreToRead {
            read(index)
        }
    }
}
