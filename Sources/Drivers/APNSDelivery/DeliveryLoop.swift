// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import Nghttp2
internal import PushModel
internal import Simdjson

/// The state of one delivery thread, and its turns: read answers, take pushes, send them, keep the
/// deadlines, hand back outcomes, sleep. One clock reading per turn; no allocation, lock or log
/// line per push.
struct DeliveryLoop: ~Copyable {
    let port: DeliveryPort
    let slab: PushSlab
    let table: SlotTable
    let budget: ConnectBudget
    let counters: TransportCounters
    let epoll: Epoll
    let resolver: Resolver
    let constants: RequestConstants

    /// At fixed addresses, so that their noncopyable contents are changed in place.
    let pools: UnsafeMutableBufferPointer<ConnectionPool>
    let connections: UnsafeMutableBufferPointer<PushConnection>
    /// The pool of each lane.
    private let poolsByLane: [Int]
    private let taken: UnsafeMutableBufferPointer<PushSlot>
    let input: UnsafeMutableRawBufferPointer

    var outcomes: OutcomeBatch
    var parser = JSONParser(bytesMax: 4096, depthMax: 16)
    var counts = TransportCounts()
    var random: SplitMix64
    var now: Now
    var phase = DeliveryPort.Phase.running
    /// Questions that the resolver has not answered yet.
    var lookupsOwed = 0

    private static let wakerTag = UInt64.max
    /// So many pushes are taken from the port in one turn; the rest wait for the next.
    private static let takenMax = 1024

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
        slab = port.slab
        table = SlotTable(slots: port.slab.slots)
        self.epoll = epoll
        resolver = Resolver(waker: port.deliveryWaker)
        constants = RequestConstants(plan: plan)
        outcomes = OutcomeBatch(port: port)
        random = SplitMix64(seed: .random(in: .min ... .max))
        now = Self.readClocks()
        taken = .allocate(capacity: Self.takenMax)
        // One TLS record at a time is what SSL_read returns.
        input = .allocate(byteCount: 16_384, alignment: 64)
        poolsByLane = plan.routing.lanes.map { lane in
            plan.pools.firstIndex { $0.id == lane.pool } ?? -1
        }
        (pools, connections) = Self.makePools(plan, logger: logger, at: now.monotonic)
    }

    private static func makePools(
        _ plan: DeliveryPlan, logger: Logger, at now: MonotonicTime
    ) -> (UnsafeMutableBufferPointer<ConnectionPool>, UnsafeMutableBufferPointer<PushConnection>) {
        let places = plan.pools.reduce(0) { $0 + ConnectionPool.placesNeeded($1) }
        let pools = UnsafeMutableBufferPointer<ConnectionPool>.allocate(
            capacity: plan.pools.count)
        let connections = UnsafeMutableBufferPointer<PushConnection>.allocate(capacity: places)
        var place = 0
        for (index, settings) in plan.pools.enumerated() {
            let end = place + ConnectionPool.placesNeeded(settings)
            let name = plan.routing[settings.id]
            let log = ConnectionLog(
                logger: logger, pool: "\(name.credential)/\(name.environment.name)")
            pools.initializeElement(
                at: index,
                to: ConnectionPool(settings: settings, places: place..<end, log: log, at: now))
            while place < end {
                connections.initializeElement(
                    at: place, to: PushConnection(pool: index, limits: settings.limits))
                place += 1
            }
        }
        return (pools, connections)
    }

    deinit {
        connections.deinitialize().deallocate()
        pools.deinitialize().deallocate()
        taken.deallocate()
        input.deallocate()
    }

    /// Returns when the port is draining or stopping and nothing is left.
    mutating func run() {
        var woken = 0
        while true {
            now = Self.readClocks()
            phase = port.currentPhase
            handleEvents(woken)
            takeSubmissions()
            if phase == .stopping { abandonEverything() }
            keepDeadlines()
            dispatchAll()
            connectWhereNeeded()
            settleConnections()
            publish()
            outcomes.flush()
            if phase != .running, isEmpty { return }
            woken = sleep()
        }
    }

    // MARK: Turns

    private mutating func handleEvents(_ count: Int) {
        for index in 0..<count {
            let event = epoll.event(index)
            if event.tag != Self.wakerTag { ready(Int(event.tag), event) }
        }
        // Asked for as long as one is owed: the wake-up that told of it may have been spent.
        if lookupsOwed > 0 {
            for answer in resolver.collect() { resolved(answer) }
        }
        for index in connections.indices where connections[index].hasMoreToRead {
            read(index)
        }
    }

    private mutating func takeSubmissions() {
        let count = port.take(into: taken)
        guard count > 0 else { return }
        for index in 0..<count {
            let slot = taken[index]
            table.places[Int(slot)].since = now.monotonic
            table.places[Int(slot)].resends = 0
            if phase == .running {
                let pool = poolsByLane[Int(slab.push(slot).pointee.lane.rawValue)]
                precondition(pool >= 0, "the plan has no pool for this lane")
                pools[pool].waiting.append(slot, table.places)
            } else {
                outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            }
        }
    }

    /// Sleeps until something happens or is due; returns how many events epoll has.
    private mutating func sleep() -> Int {
        let waker = port.deliveryWaker
        if hasMoreToDo { return epoll.wait(timeout: .zero) }
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

    private var hasMoreToDo: Bool {
        if port.hasSubmissions { return true }
        for index in connections.indices where connections[index].hasMoreToRead { return true }
        return false
    }

    private var isEmpty: Bool {
        for index in pools.indices where !pools[index].waiting.isEmpty { return false }
        for index in connections.indices where connections[index].stage != .vacant { return false }
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

    /// The streams of the open connections, and an eighth more (at least 32), so that freed
    /// streams find the next push here instead of waiting for a round through the planner.
    private func capacity(of pool: Int) -> Int {
        var streams = 0
        for index in pools[pool].places { streams += connections[index].machine.capacity }
        return streams + max(ConnectionPool.coldCapacity, streams / 8)
    }

    private static func readClocks() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }
}
