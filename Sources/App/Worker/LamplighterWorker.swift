// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
package import Configuration
internal import Delivery
internal import FlatMemory
internal import Glibc
internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
package import Logging
internal import OTLPExporter
internal import Pipeline
internal import PushModel
internal import SchemaRegistry
internal import ServiceLifecycle
internal import Synchronization

/// One worker of the fleet. `run()` returns once the worker was asked to stop and has stopped, and
/// throws if it cannot go on, so that a new process must be started.
package struct LamplighterWorker: Service, CustomStringConvertible {
    private let running: RunningConfiguration
    let plan: WorkerPlan
    private let keys: SigningKeys
    let logger: Logger
    let ports: [DeliveryPort]
    let status: StatusSource
    let log: any AdjustableLog
    let build: ServiceBuild
    let source: LogSource
    let exports = ExportCounters()
    package let control = WorkerControl()

    /// - Parameter log: what an operator changes who asks for another level of the log.
    package init(
        configuration: Configuration, build: ServiceBuild = ServiceBuild(),
        source: LogSource = LogSource(), log: any AdjustableLog, logger: Logger
    ) throws {
        try Self.checkAddressSpace(.current, logger: logger)
        running = RunningConfiguration(configuration)
        plan = WorkerPlan(configuration)
        keys = try SigningKeys(configuration.apns)
        self.log = log
        self.logger = logger
        self.build = build
        self.source = source
        status = StatusSource(
            control, build: build, source: source, keys: keys, exports: exports)
        let slab = PushSlab(slots: plan.pipeline.slots)
        let plannerWaker = Waker()
        let pools = plan.routing.pools.count
        ports = (0..<configuration.delivery.threads).map { _ in
            DeliveryPort(slab: slab, pools: pools, plannerWaker: plannerWaker)
        }
    }

    /// Throws if the process may map too little address space, and warns if it is limited: the
    /// index reserves far more address space than it uses.
    private static func checkAddressSpace(_ space: AddressSpace, logger: Logger) throws {
        guard let limit = space.limit else { return }
        guard limit >= AddressSpace.limitMin else {
            throw ServiceFailure.addressSpace(
                "the address space is limited to \(limit >> 20) MiB by \(space.cause): a worker "
                    + "needs \(AddressSpace.limitMin >> 20) MiB at least, and uses far less memory "
                    + "than it maps; limit its memory by its container instead")
        }
        logger.warning(
            "the limit on address space limits the index too: remove it, and limit memory instead",
            metadata: [
                "limitMiB": .stringConvertible(limit >> 20), "by": "\(space.cause)",
                "tableMiBMax": .stringConvertible(space.reservationMax >> 20),
            ])
    }

    /// The name of this service in the log of its service group.
    package var description: String { "worker" }

    package func run() async throws {
        let end = try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: WorkerEnd?.self) { group in
                // To try a new key a push is sent.
                if !plan.isShadow {
                    group.addTask {
                        await followKeys()
                        return nil
                    }
                }
                group.addTask {
                    try await listen()
                    return nil
                }
                group.addTask {
                    await export()
                    return nil
                }
                group.addTask { try await runThreads() }
                defer { group.cancelAll() }
                do {
                    while let end = try await group.next() {
                        if let end { return end }
                    }
                } catch {
                    // The planner does not see that its task is cancelled.
                    control.requestStop()
                    throw error
                }
                return WorkerEnd.stopped
            }
        } onGracefulShutdown: {
            control.requestStop()
        }
        switch end {
        case .stopped: return
        case .clientFailed(let reason): throw ServiceFailure.clientFailed(reason)
        case .nameTaken(let reason): throw ServiceFailure.configuration(reason)
        }
    }

    /// The configuration in effect.
    package var configuration: Configuration { running.value }

    /// Adopts the values of a new configuration that can change while the worker runs. The others
    /// keep their old values.
    ///
    /// - Returns: every key that differs, with whether it was adopted.
    package func reload(_ configuration: Configuration) -> [ConfigurationChange] {
        let (adopted, changes) = running.adopt(configuration)
        if changes.contains(where: \.isApplied) { control.adopt(WorkerPlan(adopted)) }
        return changes
    }

    /// Follows the key files until the task is cancelled.
    private func followKeys() async {
        var follower = KeyFollower(keys, logger: logger) { credential, environment, key in
            await trial(of: key, credential, environment)
        } changed: { credential, environment in
            for (number, pool) in plan.routing.pools.enumerated()
            where pool.credential == credential && pool.environment == environment {
                control.keyChanged(of: PoolID(rawValue: UInt16(number)))
            }
        }
        await follower.run(every: .seconds(5)) { PlannerLoop.clock() }
    }

    /// Tries a key on a thread of its own, because that blocks until APNs answers. A worker that
    /// stops does not wait for it.
    private func trial(
        of key: SigningKey, _ credential: String, _ environment: PushEnvironment
    ) async -> KeyTrial {
        do {
            return try await AwaitedAnswer<KeyTrial>.onThread(
                named: "key-trial",
                cancelled: KeyTrial(result: .unanswered, reason: "the worker is stopping")
            ) {
                SinglePush.trial(
                    of: key, credential: credential, environment: environment,
                    configuration: configuration, plan: plan, keys: keys, logger: logger)
            }
        } catch {
            return KeyTrial(result: .unanswered, reason: "\(error)")
        }
    }

    /// Starts the threads and waits for the planner's end, without blocking.
    private func runThreads() async throws -> WorkerEnd {
        try await AwaitedAnswer.onThread(named: "planner") { Result { try plannerThread() } }.get()
    }

    private func plannerThread() throws -> WorkerEnd {
        let configuration = running.value
        var plan = plan
        plan.recordInHand = configuration.recordInHand(topics: plan.eventTopics, logger: logger)
        let now = PlannerLoop.clock()
        let tables: TableReader
        let producer: RecordProducer
        var start = IndexStart(plan, logger: logger)
        do {
            tables = try TableReader(
                settings: plan.kafka, topics: plan.tableTopics, from: start.tables, now: now,
                logger: logger)
            // The check precedes the producer: if brokers create topics on demand, a producer would
            // create them, and `deferred` would not be compacted.
            if try producedTopicsExist() {
                try RequiredTopic.refuseUncompacted(
                    RequiredTopic.compacted(of: configuration), settings: plan.kafka,
                    logger: logger)
            }
            try plan.kafka.requireGroupProtocol()
            producer = try RecordProducer(
                settings: plan.kafka, topics: plan.producedTopics, logger: logger)
        } catch let error as KafkaError {
            throw ServiceFailure.kafka(error)
        }
        plan.pipeline.shards = shardTopic()
        let partitions = PartitionCount.ask(plan, logger: logger)
        plan.consumedPartitions = partitions?.consumed
        plan.producedPartitions = partitions?.produced ?? []
        let waker = control.waker
        let schemas = configuration.kafka.schemaRegistry.settings.map { settings in
            SchemaSource(settings) { waker.signal() }
        }
        var loop = PlannerLoop(
            pipeline: try PushPipeline(
                routing: plan.routing, bindings: plan.bindings, settings: plan.pipeline,
                slab: ports[0].slab, schemas: schemas.map { $0.lookup }),
            plan: plan, ports: ports, tables: tables, producer: producer, control: control,
            schemas: schemas,
            epoll: try PlannerLoop.makeEpoll(
                port: ports[0], control: control, tables: tables, producer: producer),
            logger: logger)
        loop.shadow?.log = try shadowLog(configuration.delivery)
        loop.outcomes = try outcomeLog()
        loop.snapshots = start.use
        if let index = start.takeIndex() { loop.pipeline.begin(with: index) }
        // In an orderly stop the planner waits until each thread has left its port.
        if plan.isShadow {
            try DeliveryThreads.startShadows(ports, pools: plan.routing.pools.count)
        } else {
            try startDelivery(configuration.apns)
        }
        let end = loop.run()
        loop.shadow?.log?.close(within: WorkerPlan.flushTimeout)
        return end
    }

    private func startDelivery(_ configuration: Configuration.APNS) throws {
        logger.notice(
            "transport chosen",
            metadata: [
                "transport": "\(configuration.chosenTransport)", "reason": "\(transportReason)",
            ])
        try DeliveryThreads.start(
            ports, configuration: configuration,
            plan: plan.delivery(configuration, keys: keys), logger: logger)
    }

    /// Nil where none is configured.
    private func shadowLog(_ delivery: Configuration.Delivery) throws -> ShadowLog? {
        guard let path = delivery.shadowLog else { return nil }
        do throws(SystemError) {
            return try ShadowLog(
                path: path, bytesMax: delivery.shadowLogBytesMax, logger: logger)
        } catch {
            throw ServiceFailure.configuration(
                "delivery.shadowLog: \(path) cannot be written (\(error)): name a file in a folder that "
                    + "this user may write to, and of which no other worker has the same")
        }
    }

    /// Nil where no topic is configured. Whether that exists does not matter: it must not stop pushes.
    private func outcomeLog() throws -> OutcomeLog? {
        guard let topic = plan.outcomesTopic else { return nil }
        do throws(KafkaError) {
            return OutcomeLog(
                try RecordProducer(settings: plan.kafka, outcomes: topic, logger: logger))
        } catch {
            throw ServiceFailure.kafka(error)
        }
    }

    /// Throws if a topic that the worker writes to does not exist or may not be described. If it
    /// were noticed later, the worker would hold the offsets of failed events for ever.
    ///
    /// - Returns: false if Kafka does not answer, so that it is not known.
    private func producedTopicsExist() throws(KafkaError) -> Bool {
        let names = plan.producedTopics
        do {
            let admin = try TopicAdmin(settings: plan.kafka, logger: logger)
            // Brokers learn of a new topic at different times.
            for _ in 1..<Self.topicLooks {
                guard try admin.firstMissing(of: names) != nil else { return true }
                usleep(Self.topicLookInterval)
            }
            guard let name = try admin.firstMissing(of: names) else { return true }
            // The list omits topics that this user may not describe. Asked by name, Kafka tells
            // whether the topic is missing or forbidden.
            _ = try admin.partitionCount(of: name)
            return true
        } catch {
            switch error {
            case KafkaError.missingTopic(let name): throw .missingTopic(name)
            case KafkaError.forbidden(let topic, let operation):
                throw .forbidden(topic: topic, operation: operation)
            default: break
            }
            // Other errors do not stop the worker: as elsewhere, it waits until Kafka is available.
            logger.warning(
                "cannot check whether the topics to write to exist", metadata: ["cause": "\(error)"]
            )
            return false
        }
    }

    private static let topicLooks = 5
    private static let topicLookInterval: UInt32 = 500_000  // µs

    /// The topic for shards; nil if they cannot be written. A worker that sends a large event alone
    /// is slow, not wrong.
    private func shardTopic() -> ShardTopic? {
        guard let binding = plan.shardBinding else { return nil }
        do throws(KafkaError) {
            let admin = try TopicAdmin(settings: plan.kafka, logger: logger)
            let partitions = try admin.partitionCount(of: plan.eventTopics[binding])
            return ShardTopic(binding: binding, partitions: partitions)
        } catch {
            logger.warning(
                "events of many tokens are not split among the workers",
                metadata: ["cause": "\(error)"])
            return nil
        }
    }

    private var transportReason: String {
        let configuration = running.value
        guard configuration.apns.transport == .auto else { return "configured" }
        return configuration.apns.proxy == nil ? "no proxy is configured" : "apns.proxy is set"
    }
}

/// The configuration in effect, reloads included.
private final class RunningConfiguration: Sendable {
    private let configuration: Mutex<Configuration>

    init(_ configuration: Configuration) { self.configuration = Mutex(configuration) }

    var value: Configuration { configuration.withLock { $0 } }

    func adopt(_ other: Configuration) -> (Configuration, [ConfigurationChange]) {
        configuration.withLock { configuration in
            let adopted = configuration.adopting(other)
            defer { configuration = adopted }
            return (adopted, configuration.changes(to: other, adopted: adopted))
        }
    }
}
