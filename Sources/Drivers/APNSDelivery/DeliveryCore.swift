// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import PushModel
internal import Simdjson

/// What every delivery thread does, whichever transport it runs: it takes pushes from the port,
/// sorts them into pools, hands back outcomes, reads the clocks once a turn, and sleeps. The
/// transport's loop owns it. It makes no allocation, lock or log line per push.
package struct DeliveryCore: ~Copyable {
    let port: DeliveryPort
    let slab: PushSlab
    let plan: DeliveryPlan
    let budget: ConnectBudget
    let epoll: Epoll

    /// The pools of this thread, at fixed addresses, so that their noncopyable contents are changed
    /// in place.
    let pools: UnsafeMutableBufferPointer<ConnectionPool>
    /// What the thread keeps of each push: one state for each slot of the slab.
    let states: UnsafeMutablePointer<SlotState>
    /// The pool of each route, by the route's number.
    private let poolsByRoute: [Int]
    private let taken: UnsafeMutableBufferPointer<PushSlot>

    var outcomes: OutcomeBatch
    var parser = JSONParser(bytesMax: 4096, depthMax: 16)
    var counts = TransportCounts()
    var random = SplitMix64(seed: .random(in: .min ... .max))
    private(set) var now: Now
    private(set) var phase = DeliveryPort.Phase.running

    private static let wakerTag = UInt64.max
    /// The most pushes taken from each inbox of the port in one turn; the rest wait for the next.
    private static let takenMax = 1024

    init(_ duty: DeliveryDuty) throws(SystemError) {
        let epoll = try Epoll()
        try epoll.add(duty.port.deliveryWaker.descriptor, for: .read, tag: Self.wakerTag)
        self.init(duty, epoll: epoll)
    }

    private init(_ duty: DeliveryDuty, epoll: consuming Epoll) {
        port = duty.port
        slab = duty.port.slab
        plan = duty.plan
        budget = duty.budget
        self.epoll = epoll
        outcomes = OutcomeBatch(port: duty.port)
        now = Self.readClocks()
        states = .allocate(capacity: slab.slots)
        states.initialize(repeating: SlotState(), count: slab.slots)
        taken = .allocate(capacity: Self.takenMax)
        poolsByRoute = duty.plan.routing.routes.map { route in
            duty.plan.pools.firstIndex { $0.id == route.pool } ?? -1
        }
        pools = Self.makePools(duty, at: now.monotonic)
    }

    private static func makePools(
        _ duty: DeliveryDuty, at now: MonotonicTime
    ) -> UnsafeMutableBufferPointer<ConnectionPool> {
        let pools = UnsafeMutableBufferPointer<ConnectionPool>.allocate(
            capacity: duty.plan.pools.count)
        precondition(
            Set(duty.plan.pools.map(\.id)).count == duty.plan.pools.count,
            "each pool of the plan has a number of its own")
        var next = 0
        for (index, settings) in duty.plan.pools.enumerated() {
            let first = next
            next += ConnectionPool.connectionsNeeded(settings)
            let name = duty.plan.routing[settings.id]
            let log = ConnectionLog(
                logger: duty.logger,
                pool: "\(name.credential)/\(name.environment.name)"
                    + (name.isForBroadcasts ? "/broadcasts" : ""))
            pools.initializeElement(
                at: index,
                to: ConnectionPool(settings: settings, connections: first..<next, log: log, at: now)
            )
        }
        return pools
    }

    deinit {
        pools.deinitialize().deallocate()
        states.deallocate()
        taken.deallocate()
    }

    // MARK: Turns

    mutating func beginTurn() {
        now = Self.readClocks()
        port.heartbeat.beat(now.monotonic)
        let next = port.currentPhase
        assert(phase.rawValue <= next.rawValue, "a port's phases only go forward")
        phase = next
    }

    /// Sorts the pushes that the planner has handed over into their pools, or gives them back at
    /// once while draining or stopping.
    mutating func takeSubmissions() {
        takeSubmissions(isPatient: false)
        takeSubmissions(isPatient: true)
    }

    private mutating func takeSubmissions(isPatient: Bool) {
        let count = port.take(into: taken, isPatient: isPatient)
        guard count > 0 else { return }
        for index in 0..<count {
            let slot = taken[index]
            assert(Int(slot) < slab.slots, "the planner hands over only slots of the slab")
            let state = states + Int(slot)
            state.pointee.takenAt = now.monotonic
            state.pointee.since = now.monotonic
            state.pointee.resends = 0
            state.pointee.isPatient = isPatient
            if phase == .running {
                let pool = poolsByRoute[Int(slab.push(slot).pointee.route.rawValue)]
                precondition(pool >= 0, "the plan has a pool for each route that pushes have")
                pools[pool].waiting.append(slot, isPatient: isPatient, states)
            } else {
                outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            }
        }
    }

    /// The event that epoll reports at this position; nil for a wake-up, which needs no handling.
    func event(_ position: Int) -> Epoll.Event? {
        let event = epoll.event(position)
        return event.tag == Self.wakerTag ? nil : event
    }

    /// Publishes capacities and counts, and hands the turn's outcomes to the planner. Returns
    /// whether this was the last turn: the port is draining or stopping and every push has its
    /// outcome.
    mutating func endTurn<Connection: PooledConnection & ~Copyable>(
        with connections: ConnectionTable<Connection>
    ) -> Bool {
        judgeConnections(connections)
        measurePools(of: connections)
        port.counters.publish(counts)
        outcomes.flush()
        return phase != .running && isEmpty(connections)
    }

    /// Sleeps until something happens or is due; returns how many events epoll has.
    func sleep(until deadline: MonotonicTime) -> Int {
        if port.hasSubmissions || deadline <= now.monotonic { return epoll.wait(timeout: .zero) }
        port.deliveryWaker.prepareToSleep()
        defer { port.deliveryWaker.awake() }
        // Looks a second time: a hand-over before `prepareToSleep` has sent no wake-up.
        if port.hasSubmissions || port.currentPhase != phase { return epoll.wait(timeout: .zero) }
        let wake = min(deadline, now.monotonic + Heartbeat.sleepMax)
        return epoll.wait(timeout: wake - Self.readClocks().monotonic)
    }

    private static func readClocks() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }
}
