// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
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
    var readers: KafkaReaders
    var delivery: DeliveryPorts
    var records: RecordOutlets
    /// What is to be done with assignments, restarts and the stop.
    var lifecycle: WorkerLifecycle
    /// Which partitions of events are read.
    var holds: TopicHolds
    var waits: RecordWaits
    /// The explanations that listeners have asked for.
    var inquiries = OpenInquiries()
    var reports = PlannerReports()
    /// What takes the place of APNs and of the topics that are written to; nil where pushes are sent.
    var shadow: Shadow?
    /// Writes how pushes ended; nil where nobody wants to know.
    var outcomes: OutcomeLog?
    /// Where the index is kept; nil for nowhere.
    var snapshots: SnapshotUse?
    let control: WorkerControl
    let logger: Logger
    let epoll: Epoll

    var tables: TableReader { readers.tables }
    var consumer: EventConsumer? { readers.consumer }

    init(
        pipeline: consuming PushPipeline, plan: WorkerPlan, ports: [DeliveryPort],
        tables: TableReader, producer: RecordProducer, control: WorkerControl,
        schemas: SchemaSource? = nil, epoll: consuming Epoll, logger: Logger
    ) {
        precondition(
            producer.topics == plan.producedTopics && tables.topics == plan.tableTopics,
            "a position names the same topic to the clients and to the plan")
        self.plan = plan
        self.control = control
        self.logger = logger
        readers = KafkaReaders(tables)
        shadow = plan.isShadow ? Shadow() : nil
        delivery = DeliveryPorts(ports, pools: plan.routing.pools.count)
        records = RecordOutlets(producer, plan)
        lifecycle = WorkerLifecycle(drainMax: PipelineSettings.drainMax, now: Self.clock())
        holds = TopicHolds(topics: plan.eventTopics.count)
        waits = RecordWaits(
            schemas: schemas, hasSchema: plan.bindings.map(\.hasSchema))
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
        case .outcomes: return delivery.collect(&pipeline, &shadow, now: now)
        case .acknowledgements:
            let isBusy = records.collectAcknowledgements(&pipeline, now: now)
            records.keepShardsMoving(&pipeline, now: now)
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
        case .handOver: return lifecycle.mayHandOver && delivery.handOver(&pipeline, now: now)
        case .records:
            if shadow != nil { return takeShadowRecords(now: now) }
            produceRecords(now: now)
            writeCanary(now: now)
            if outcomes != nil { writeOutcomes(now: now) }
        case .offsets: if lifecycle.schedule.isCommitDue(now) { commitOffsets(now: now) }
        case .watch:
            if reports.watch.mustReportBreakers(opened: pipeline.breakersOpened, now: now.monotonic)
            {
                reports.watch.report(pipeline.trippedBreakers(now: now), logger: logger)
            }
            if control.takeReportRequest() { reports.flow.askForReport() }
            if reports.flow.isReportWanted || lifecycle.schedule.isWatchDue(now) {
                watchOver(now: now)
            }
        case .lifecycle: advanceLifecycle(now: now)
        }
        return false
    }

    mutating func produceRecords(now: Now) { records.produce(&pipeline, plan, now: now) }

    /// When Kafka is to be read again though nothing has come from there.
    private func nextLook(now: Now) -> MonotonicTime {
        func due(_ look: MonotonicTime?) -> MonotonicTime {
            // What is over was not read for want of room. Whatever makes room wakes the thread.
            if let look, look > now.monotonic { look } else { .distantFuture }
        }
        return min(
            due(consumer?.nextLook), due(tables.nextLook), due(readers.rereader?.nextLook))
    }

    private mutating func sleep(now: Now) {
        let waker = delivery.waker
        waker.prepareToSleep()
        defer { waker.awake() }
        if delivery.hasOutcomes { return }
        var wake = min(pipeline.nextDue(now: now), lifecycle.nextDue(now: now))
        wake = min(wake, inquiries.nextDue(now: now.monotonic), topicTurnsDue)
        wake = min(wake, now.monotonic + Heartbeat.sleepMax)
        if let deadline = consumer?.nextDeadline {
            // The deadline may have passed: without room for events, the consumer is not polled.
            wake = min(wake, max(deadline, now.monotonic + .milliseconds(10)))
        }
        wake = min(wake, nextLook(now: now))
        let ready = epoll.wait(timeout: max(.zero, wake - now.monotonic))
        for index in 0..<ready {
            switch epoll.event(index).tag {
            case 1: control.waker.awake()
            case 2: tables.clearWakeUp()
            case 3: records.producer.clearWakeUp()
            case 4: consumer?.clearWakeUp()
            case 5: readers.rereader?.clearWakeUp()
            default: break
            }
        }
    }
}
