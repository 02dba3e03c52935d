// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Intake
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

/// The planner thread: it owns intake, index, planning, waiting and ledger, so nothing on the path
/// of a push is shared or locked. Each turn does a bounded amount of each kind of work, in the order
/// of a push's journey backwards, so that room is made before it is filled; then it sleeps until
/// something happens.
struct PlannerLoop: ~Copyable {
    var pipeline: PushPipeline
    var plan: WorkerPlan
    let ports: [DeliveryPort]
    let tables: TableReader
    let producer: RecordProducer
    let control: WorkerControl
    let logger: Logger
    let epoll: Epoll

    /// Nil until the index is complete: the first event must find everybody.
    var consumer: EventConsumer?
    /// By us, for want of memory.
    var isDeferredPaused = false
    var valve = IntakeValve()
    var revoke: RevokeDrain?
    var stop: StopDrain?
    var end: WorkerEnd?
    /// By `RecordTopic`.
    var outlets: [RecordOutlet]
    /// Pushes with each port, by pool.
    var outstanding: [[Int]]
    /// The port that is offered pushes first.
    var firstPort = 0
    var schedule: TurnSchedule
    var watch = ConsumerWatch()
    var restarts = ConsumerRestarts()
    var flow = FlowReport()
    var recordTimes = RecordTimeWatch()
    var tableWatch = TableWatch()

    let slotBatch: UnsafeMutableBufferPointer<PushSlot>
    let outcomeBatch: UnsafeMutableBufferPointer<PushOutcome>

    /// Partitions that the group wants back, and until when their pushes may end.
    struct RevokeDrain {
        var assignments: [AssignmentID]
        var deadline: MonotonicTime
        var watch = DrainWatch()
    }

    /// Nil while nothing is given up.
    private var drain: Drain? {
        if stop?.hasAskedDelivery == true { return .ending }
        let ends = [revoke?.deadline, stop?.graceEndsAt].compactMap(\.self)
        return ends.min().map { .until($0) }
    }

    /// An orderly stop.
    struct StopDrain {
        /// When the grace period of everything that was read is over. A push that rests for longer
        /// is deferred.
        var graceEndsAt: MonotonicTime
        /// From here on nothing is waited for.
        var deadline: MonotonicTime
        var hasAskedDelivery = false
        var watch = DrainWatch()
    }

    // How much of each kind of work a turn does at most: a turn stays under a few milliseconds.
    private static let eventsPerTurn = 512
    private static let tableRecordsPerTurn = 512
    private static let fanOutStepsPerTurn = 2048
    private static let batch = 1024

    init(
        pipeline: consuming PushPipeline, plan: WorkerPlan, ports: [DeliveryPort],
        tables: TableReader, producer: RecordProducer, control: WorkerControl,
        epoll: consuming Epoll, logger: Logger
    ) {
        self.plan = plan
        self.ports = ports
        self.tables = tables
        self.producer = producer
        self.control = control
        self.logger = logger
        outstanding = ports.map { _ in plan.routing.pools.map { _ in 0 } }
        outlets = RecordOutlet.all(properties: plan.kafka.properties.mapValues(\.text))
        schedule = TurnSchedule(now: Self.clock())
        slotBatch = .allocate(capacity: Self.batch)
        outcomeBatch = .allocate(capacity: Self.batch)
        self.epoll = epoll
        self.pipeline = pipeline
    }

    /// What the planner sleeps on; the consumer joins when there is one.
    static func makeEpoll(
        port: DeliveryPort, control: WorkerControl, tables: TableReader, producer: RecordProducer
    ) throws(SystemError) -> Epoll {
        let epoll = try Epoll()
        try epoll.add(port.plannerWaker.descriptor, for: .read, tag: 0)
        try epoll.add(control.waker.descriptor, for: .read, tag: 1)
        try epoll.add(tables.wakeDescriptor, for: .read, tag: 2)
        try epoll.add(producer.wakeDescriptor, for: .read, tag: 3)
        return epoll
    }

    deinit {
        slotBatch.deallocate()
        outcomeBatch.deallocate()
    }

    static func clock() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }

    /// The thread's body; returns when the worker has stopped.
    mutating func run() -> WorkerEnd {
        while true {
            let now = Self.clock()
            let isBusy = turn(now: now)
            if let end { return finish(end) }
            if !isBusy { sleep(now: now) }
        }
    }

    /// - Returns: whether there is more to do at once.
    private mutating func turn(now: Now) -> Bool {
        adoptReloadedPlan()
        for pool in control.takeRekeyed() { pipeline.keyChanged(of: pool, now: now) }
        var isBusy = collectOutcomes(now: now)
        isBusy = collectAcknowledgements(now: now) || isBusy
        keepShardsMoving(now: now)
        isBusy = readTables(limit: Self.tableRecordsPerTurn, now: now) || isBusy
        isBusy = readEvents(limit: Self.eventsPerTurn, now: now) || isBusy
        pipeline.drain = drain
        pipeline.advance(now: now)
        let steps = pipeline.advanceFanOuts(steps: Self.fanOutStepsPerTurn, now: now)
        isBusy = steps == Self.fanOutStepsPerTurn || isBusy
        isBusy = handOver(now: now) || isBusy
        produceRecords(now: now)
        if schedule.isStoreDue(now) { storeOffsets(now: now) }
        if control.takeReportRequest() { flow.askForReport() }
        if flow.isReportWanted || schedule.isWatchDue(now) { watchOver(now: now) }
        restartConsumer(now: now)
        advanceRevoke(now: now)
        advanceStop(now: now)
        return isBusy
    }

    private mutating func sleep(now: Now) {
        let waker = ports[0].plannerWaker
        waker.prepareToSleep()
        defer { waker.awake() }
        if ports.contains(where: \.hasOutcomes) { return }
        var wake = min(pipeline.nextDue(now: now), schedule.next)
        if let deadline = consumer?.nextDeadline {
            // It may be over already, where there is no room to poll.
            wake = min(wake, max(deadline, now.monotonic + .milliseconds(10)))
        }
        if let revoke { wake = min(wake, min(revoke.deadline, now.monotonic + .milliseconds(10))) }
        if stop != nil { wake = min(wake, now.monotonic + .milliseconds(10)) }
        let ready = epoll.wait(timeout: max(.zero, wake - now.monotonic))
        for index in 0..<ready {
            switch epoll.event(index).tag {
            case 1: control.waker.awake()
            case 2: tables.clearWakeUp()
            case 3: producer.clearWakeUp()
            case 4: consumer?.clearWakeUp()
            default: break
            }
        }
    }
}
