// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Intake
internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import OTLPExporter
internal import Pipeline
internal import PushModel
internal import SchemaRegistry

/// The planner thread. It owns intake, index, planning, deferral and ledger, so nothing on the path
/// of a push is shared or locked. Each turn does a bounded amount of each kind of work
/// (`TurnStep`); then the thread sleeps until something happens. It polls and performs, while
/// `WorkerLifecycle` decides on assignments, restarts and the stop.
struct PlannerLoop: ~Copyable {
    var pipeline: PushPipeline
    var plan: WorkerPlan
    let ports: [DeliveryPort]
    let tables: TableReader
    let producer: RecordProducer
    let control: WorkerControl
    let logger: Logger
    let epoll: Epoll

    /// The consumer of events; nil until the index is complete, since the first event must find all
    /// its tokens.
    var consumer: EventConsumer?
    /// Reads partitions of `deferred` again; nil until that is needed. When it may be opened, after
    /// that has failed.
    var rereader: PartitionRereader?
    var rereadsAt = MonotonicTime(nanoseconds: .min)
    var lifecycle: WorkerLifecycle
    /// The outlets, by `RecordTopic`.
    var outlets: [RecordOutlet]
    /// How many pushes each port holds, by port and pool.
    var outstanding: [[Int]]
    /// The port that was offered pushes first in the last turn.
    var firstPort = 0
    var watch = ConsumerWatch()
    var flow = FlowReport()
    var recordTimes = RecordTimeWatch()
    var tableWatch = TableWatch()
    var unmatchedReport = UnmatchedReport()
    var setAsideReport = SetAsideReport()
    var misplacedReport = MisplacedReport()
    /// Tells what is known of schemas; nil where no registry is configured.
    let schemas: SchemaSource?
    /// Whether records of each events topic have a schema.
    let hasSchema: [Bool]
    var held = HeldPartitions()
    var heldReport = HeldReport()
    var clockHold = ClockHold()
    var clockReport = ClockReport()
    var restrictionsWait = RestrictionsWait()
    /// The topics of the event partitions that are ours, by position.
    var topicsOfEvents: [AssignmentID: Int] = [:]
    /// What operators had restricted when this was last looked at.
    var restrictions = SeenRestrictions()
    /// Which topics of events wait for their turn.
    var turns: TopicTurns
    var turnsDueAt = MonotonicTime(nanoseconds: .min)
    let partitionCount = PartitionCount()
    /// When to count the partitions again, where Kafka did not say.
    var countsPartitionsAt: MonotonicTime?
    var isCountingPartitions = false
    /// The explanations that listeners have asked for.
    var inquiries = OpenInquiries()

    /// Where the index is kept; nil for nowhere.
    var snapshots: SnapshotUse?
    /// When the worker was asked to stop.
    var stopBegan: MonotonicTime?

    let startedAt: MonotonicTime
    /// The ID of the Kafka cluster, which commit notes belong to; without it there are none.
    let cluster: String?
    /// The times from sending a request to taking in its answer.
    var roundTrips = LatencyHistogram()

    let slotBatch: UnsafeMutableBufferPointer<PushSlot>
    let outcomeBatch: UnsafeMutableBufferPointer<PushOutcome>

    private static let batch = 1024

    init(
        pipeline: consuming PushPipeline, plan: WorkerPlan, ports: [DeliveryPort],
        tables: TableReader, producer: RecordProducer, control: WorkerControl,
        schemas: SchemaSource? = nil, epoll: consuming Epoll, logger: Logger
    ) {
        precondition(!ports.isEmpty, "a planner without a delivery thread")
        precondition(
            producer.topics == plan.producedTopics && tables.topics == plan.tableTopics,
            "a position names another topic to the client than to the plan")
        self.plan = plan
        self.ports = ports
        self.tables = tables
        self.producer = producer
        self.control = control
        self.schemas = schemas
        hasSchema = plan.bindings.map(\.hasSchema)
        self.logger = logger
        outstanding = ports.map { _ in plan.routing.pools.map { _ in 0 } }
        outlets = RecordOutlet.all(properties: plan.kafka.properties.mapValues(\.text))
        let now = Self.clock()
        startedAt = now.monotonic
        cluster = tables.clusterID
        turns = TopicTurns(topics: plan.eventTopics.count)
        lifecycle = WorkerLifecycle(drainMax: PipelineSettings.drainMax, now: now)
        slotBatch = .allocate(capacity: Self.batch)
        outcomeBatch = .allocate(capacity: Self.batch)
        self.epoll = epoll
        self.pipeline = pipeline
        sharePartitions()
    }

    /// The descriptors that wake the planner. The consumer's is added when it is opened.
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

    /// The body of the planner thread. Returns when the worker has ended.
    mutating func run() -> WorkerEnd {
        while true {
            let now = Self.clock()
            let isBusy = turn(now: now)
            if let end = lifecycle.end { return close(end) }
            if !isBusy { sleep(now: now) }
        }
    }

    /// Runs one turn.
    ///
    /// - Returns: whether there is more to do at once.
    mutating func turn(now: Now) -> Bool {
        control.heartbeat.beat(now.monotonic)
        adoptReloadedPlan()
        for pool in control.takeRekeyed() { pipeline.keyChanged(of: pool, now: now) }
        var isBusy = answerQuestions(now: now)
        for step in TurnStep.order where take(step, now: now) { isBusy = true }
        // If the exporter is at the queue just now, they go in the next turn.
        if pipeline.hasSpans { control.spans.offer { pipeline.takeSpans() } }
        return isBusy
    }

    /// Does one kind of work.
    ///
    /// - Returns: whether there is more of it to do at once.
    private mutating func take(_ step: TurnStep, now: Now) -> Bool {
        switch step {
        case .outcomes: return collectOutcomes(now: now)
        case .acknowledgements:
            let isBusy = collectAcknowledgements(now: now)
            keepShardsMoving(now: now)
            return isBusy
        case .tables: return readTables(limit: TurnBudget.tableRecords, now: now)
        case .events:
            let isBusy = readEvents(now: now)
            return readAgain(now: now) || isBusy
        case .timers:
            pipeline.drain = lifecycle.drain
            if lifecycle.isDraining { pipeline.flushDeadLetters(now: now, all: true) }
            pipeline.advance(now: now)
            followRestrictions(now: now)
            takeTopicTurns(now: now)
        case .fanOuts:
            let steps = pipeline.advanceFanOuts(steps: TurnBudget.fanOutSteps, now: now)
            return steps == TurnBudget.fanOutSteps
        case .handOver: return handOver(now: now)
        case .records:
            produceRecords(now: now)
            writeCanary(now: now)
        case .offsets: if lifecycle.schedule.isStoreDue(now) { storeOffsets(now: now) }
        case .watch:
            if watch.mustReportBreakers(opened: pipeline.breakersOpened, now: now.monotonic) {
                watch.report(pipeline.trippedBreakers(now: now), logger: logger)
            }
            if control.takeReportRequest() { flow.askForReport() }
            if flow.isReportWanted || lifecycle.schedule.isWatchDue(now) { watchOver(now: now) }
        case .lifecycle: advanceLifecycle(now: now)
        }
        return false
    }

    private mutating func sleep(now: Now) {
        let waker = ports[0].plannerWaker
        waker.prepareToSleep()
        defer { waker.awake() }
        if ports.contains(where: \.hasOutcomes) { return }
        var wake = min(pipeline.nextDue(now: now), lifecycle.nextDue(now: now))
        wake = min(wake, inquiries.nextDue(now: now.monotonic), topicTurnsDue)
        wake = min(wake, now.monotonic + Heartbeat.sleepMax)
        if let deadline = consumer?.nextDeadline {
            // The deadline may have passed: without room for events, the consumer is not polled.
            wake = min(wake, max(deadline, now.monotonic + .milliseconds(10)))
        }
        let ready = epoll.wait(timeout: max(.zero, wake - now.monotonic))
        for index in 0..<ready {
            switch epoll.event(index).tag {
            case 1: control.waker.awake()
            case 2: tables.clearWakeUp()
            case 3: producer.clearWakeUp()
            case 4: consumer?.clearWakeUp()
            case 5: rereader?.clearWakeUp()
            default: break
            }
        }
    }
}
