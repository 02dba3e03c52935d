// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import LinuxIO
internal import Logging
internal import PushModel
internal import Simdjson

/// The state of one delivery thread of libcurl's, and its turns: the same as `DeliveryLoop`'s, with
/// libcurl to do what lies below requests.
struct CurlDeliveryLoop: ~Copyable {
    let port: DeliveryPort
    let slab: PushSlab
    let budget: ConnectBudget
    let counters: TransportCounters
    let epoll: Epoll

    /// At fixed addresses, so that their noncopyable contents are changed in place.
    let pools: UnsafeMutableBufferPointer<ConnectionPool>
    let connections: UnsafeMutableBufferPointer<CurlConnection>
    /// One for each slot of the slab.
    let places: UnsafeMutablePointer<SlotTable.Place>
    /// The pool of each lane.
    private let poolsByLane: [Int]
    private let taken: UnsafeMutableBufferPointer<PushSlot>

    var request: CurlRequest
    var outcomes: OutcomeBatch
    var parser = JSONParser(bytesMax: 4096, depthMax: 16)
    var counts = TransportCounts()
    var random: SplitMix64
    var now: Now
    var phase = DeliveryPort.Phase.running

    private static let wakerTag = UInt64.max
    /// So many pushes are taken from the port in one turn; the rest wait for the next.
    private static let takenMax = 1024
    /// libcurl 7.88 loses timers and wake-ups (fixed in 8.4.0, 8.7.0, 8.11.1), so with requests in
    /// flight it is asked at least this often.
    private static let tick = Duration.milliseconds(100)

    init(
        port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget,
        counters: TransportCounters, logger: Logger
    ) throws(SystemError) {
        let epoll = try Epoll()
        try epoll.add(port.deliveryWaker.descriptor, for: .read, tag: Self.wakerTag)
        self.init(
            port: port, plan: plan, budget: budget, counters: counters, logger: logger,
            epoll: epoll)
    }

    private init(
        port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget,
        counters: TransportCounters, logger: Logger, epoll: consuming Epoll
    ) {
        self.port = port
        self.budget = budget
        self.counters = counters
        self.epoll = epoll
        slab = port.slab
        places = .allocate(capacity: port.slab.slots)
        places.initialize(repeating: SlotTable.Place(), count: port.slab.slots)
        taken = .allocate(capacity: Self.takenMax)
        request = CurlRequest(plan: plan)
        outcomes = OutcomeBatch(port: port)
        random = SplitMix64(seed: .random(in: .min ... .max))
        now = Self.readClocks()
        poolsByLane = plan.routing.lanes.map { lane in
            plan.pools.firstIndex { $0.id == lane.pool } ?? -1
        }
        pools = .allocate(capacity: plan.pools.count)
        let count = plan.pools.reduce(0) { $0 + ConnectionPool.placesNeeded($1) }
        connections = .allocate(capacity: count)
        var next = 0
        for (index, settings) in plan.pools.enumerated() {
            let first = next
            next += ConnectionPool.placesNeeded(settings)
            let name = plan.routing[settings.id]
            let log = ConnectionLog(
                logger: logger, pool: "\(name.credential)/\(name.environment.name)")
            pools.initializeElement(
                at: index,
                to: ConnectionPool(
                    settings: settings, places: first..<next, log: log, at: now.monotonic))
            for place in first..<next {
                connections.initializeElement(
                    at: place, to: CurlConnection(pool: index, settings: settings))
            }
        }
    }

    deinit {
        connections.deinitialize().deallocate()
        pools.deinitialize().deallocate()
        places.deallocate()
        taken.deallocate()
    }

    /// Returns when the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            now = Self.readClocks()
            phase = port.currentPhase
            handleEvents(woken)
            driveConnections()
            endRequests()
            takeSubmissions()
            if phase == .stopping { abandonEverything() }
            refreshTokens()
            keepDeadlines()
            connectWhereNeeded()
            dispatchAll()
            driveConnections()
            watchSockets()
            publish()
            outcomes.flush()
            if phase != .running, isEmpty { return }
            woken = sleep()
        }
    }

    // MARK: Turns

    private mutating func handleEvents(_ count: Int) {
        for position in 0..<count {
            let event = epoll.event(position)
            guard event.tag != Self.wakerTag else { continue }
            let index = Int(event.tag >> 32)
            // A socket that was closed since, here or earlier in this loop, is unknown to libcurl,
            // which takes no notice.
            connections[index].multi.ready(
                CInt(truncatingIfNeeded: event.tag), reads: event.isReadable,
                writes: event.isWritable)
            connections[index].progressAt = now.monotonic
            connections[index].settle(at: now.monotonic)
        }
    }

    /// Calls libcurl where its timer is due, and where it may have lost one.
    private mutating func driveConnections() {
        for index in connections.indices where connections[index].machine.requestsInFlight > 0 {
            connections[index].keepTimer(at: now.monotonic)
            guard now.monotonic - connections[index].progressAt >= .seconds(1) else { continue }
            connections[index].progressAt = now.monotonic
            connections[index].multi.kick()
            connections[index].settle(at: now.monotonic)
        }
    }

    private mutating func takeSubmissions() {
        let count = port.take(into: taken)
        for index in 0..<count {
            let slot = taken[index]
            places[Int(slot)].since = now.monotonic
            places[Int(slot)].resends = 0
            if phase == .running {
                let pool = poolsByLane[Int(slab.push(slot).pointee.lane.rawValue)]
                precondition(pool >= 0, "the plan has no pool for this lane")
                pools[pool].waiting.append(slot, places)
            } else {
                outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            }
        }
    }

    /// Sleeps until something happens or is due; returns how many events epoll has.
    private mutating func sleep() -> Int {
        let waker = port.deliveryWaker
        let deadline = nextDeadline()
        waker.prepareToSleep()
        // The second look, without which a hand-over just now would find nobody to wake.
        if port.hasSubmissions || port.currentPhase != phase {
            waker.awake()
            return epoll.wait(timeout: .zero)
        }
        let timeout = deadline == .distantFuture ? nil : deadline - Self.readClocks().monotonic
        let count = epoll.wait(timeout: timeout)
        waker.awake()
        return count
    }

    /// When the loop must look again even if nothing happens.
    private func nextDeadline() -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for index in connections.indices where !connections[index].isVacant {
            // Ends that the dispatch brought are handled, and their places filled, at once.
            if !connections[index].ends.isEmpty { return now.monotonic }
            next = min(next, connections[index].machine.nextDeadline)
            guard connections[index].machine.requestsInFlight > 0 else { continue }
            next = min(next, connections[index].timerAt, now.monotonic + Self.tick)
        }
        guard phase == .running else { return next }
        for pool in pools.indices where !pools[pool].waiting.isEmpty {
            if pools[pool].connectAt > now.monotonic { next = min(next, pools[pool].connectAt) }
            if hasOpenConnection(pool) { continue }
            let oldest = places[Int(pools[pool].waiting.first)].since
            next = min(next, oldest + pools[pool].settings.limits.waitMax)
        }
        return next
    }

    private var isEmpty: Bool {
        for index in pools.indices where !pools[index].waiting.isEmpty { return false }
        for index in connections.indices where !connections[index].isVacant { return false }
        return !port.hasSubmissions
    }

    private mutating func publish() {
        for index in pools.indices {
            let capacity = phase == .running ? capacity(of: index) : 0
            guard capacity != pools[index].publishedCapacity else { continue }
            pools[index].publishedCapacity = capacity
            port.publish(capacity: capacity, of: pools[index].settings.id)
        }
        counters.publish(counts)
    }

    /// As `DeliveryLoop` counts it: what is in flight, and the next few milliseconds of sending.
    private func capacity(of pool: Int) -> Int {
        var requests = 0
        for index in pools[pool].places { requests += connections[index].machine.capacity }
        return requests + max(ConnectionPool.coldCapacity, requests / 8)
    }

    private static func readClocks() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }
}
