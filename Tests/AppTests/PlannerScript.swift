// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import EmbeddedKafka
internal import FleetKit
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import SchemaCodecs
internal import Synchronization
internal import Testing

@testable internal import KafkaLog
@testable internal import Lifecycle
@testable internal import Rdkafka
@testable internal import Worker

/// The real planner loop with a real consumer and producer on an embedded Kafka. The test says when a
/// turn is and what the time is; it plays the group, both delivery threads, the schema registry and
/// the operator. What the loop has asked of its clients is read from them: which partitions are paused
/// and held (`row`), what is stored, and which pushes each port has.
final class PlannerScript {
    /// Positions in `loop.plan.consumedTopics`. Records of `orders` have schema 1.
    static let plain = 0
    static let orders = 1
    static let deferred = 2

    let kafka: EmbeddedKafka
    let control = WorkerControl()
    let ports: [DeliveryPort]
    let lines = LogLines()
    var loop: PlannerLoop
    /// How far the script's clocks are ahead of the machine's.
    var passed = Duration.zero
    var wallAhead = Duration.zero
    private let registry = Registry()
    private let producer: RecordProducer
    private let topics: [String]
    private let slab: PushSlab
    /// By port: what it was given and has not answered.
    private(set) var taken: [[PushSlot]] = [[], []]
    /// How many of all pushes the ports were given as patient ones.
    private(set) var patientCount = 0

    private final class Registry: Sendable {
        let answer = Mutex(SchemaAnswer.pending)
        let lookups = Atomic(0)

        func look() -> SchemaAnswer {
            lookups.add(1, ordering: .relaxed)
            return answer.withLock { $0 }
        }
    }

    /// - Parameters:
    ///   - yaml: more configuration.
    ///   - outcomes: the topic of outcomes; nil for none.
    ///   - prepare: is called before the loop's clients connect.
    init(
        _ yaml: String = "", outcomes: String? = nil,
        prepare: (EmbeddedKafka) throws -> Void = { _ in }
    ) throws {
        let names = try Self.configured(yaml)
        topics =
            names.eventTopics + [names.deferredTopic] + names.tableTopics
            + ["lamplighter.dead-letters"] + (outcomes.map { [$0] } ?? [])
        let tables = names.tableTopics
        kafka = try EmbeddedKafka(
            topics: Dictionary(
                topics.map { ($0, tables.contains($0) ? 1 : 2) }, uniquingKeysWith: { $1 }))
        // REBALANCE_IN_PROGRESS on JoinGroup: all rebalances are the script's.
        try kafka.perform(.fail(apiKey: 11, code: 27, count: 100_000))
        var variables = ["LAMPLIGHTER_KAFKA_BOOTSTRAP": kafka.bootstrap]
        variables["LAMPLIGHTER_KAFKA_TOPICS_OUTCOMES"] = outcomes
        let plan = try Self.configured(yaml, variables)
        let quiet = Logger(label: "script") { _ in SwiftLogNoOpLogHandler() }
        producer = try RecordProducer(settings: plan.kafka, topics: topics, logger: quiet)
        slab = PushSlab(slots: plan.pipeline.slots)
        let (slab, waker, lines, registry) = (slab, Waker(), lines, registry)
        ports = (0..<2).map { _ in
            DeliveryPort(slab: slab, pools: plan.routing.pools.count, plannerWaker: waker)
        }
        try Self.register(producer, topics.firstIndex(of: plan.tableTopics[0])!)
        try prepare(kafka)
        let reader = try TableReader(
            settings: plan.kafka, topics: plan.tableTopics, now: PlannerLoop.clock(), logger: quiet)
        let own = try RecordProducer(
            settings: plan.kafka, topics: plan.producedTopics, logger: quiet)
        loop = PlannerLoop(
            pipeline: try PushPipeline(
                routing: plan.routing, bindings: plan.bindings, settings: plan.pipeline, slab: slab,
                schemas: { _ in registry.look() }),
            plan: plan, ports: ports, tables: reader, producer: own, control: control,
            epoll: try PlannerLoop.makeEpoll(
                port: ports[0], control: control, tables: reader, producer: own),
            logger: Logger(label: "planner") { _ in LineHandler(lines: lines) })
        loop.outcomes = try outcomes.map {
            OutcomeLog(try RecordProducer(settings: plan.kafka, outcomes: $0, logger: quiet))
        }
    }

    private static func configured(
        _ yaml: String, skip: String = "", _ variables: [String: String] = [:]
    ) throws -> WorkerPlan {
        WorkerPlan(
            try configuration(
                """
                kafka:
                  \(yaml.contains("mode: shadow") ? "group: my-shadow" : "")
                  schemaRegistry: {urls: ["http://127.0.0.1:9"]}
                  properties: {fetch.wait.max.ms: "20", auto.commit.interval.ms: "100"}
                  startFrom: earliest
                  skip: [\(skip)]
                  events:
                    lamplighter.events: {}
                    orders: {valueSchema: avro, subject: "s{/id}"}
                index: {registrationGrace: 0s}
                \(yaml)
                """, variables))
    }

    /// Controls 1 to 4; number n shows `sn`, and all show `all`.
    private static func register(_ producer: RecordProducer, _ topic: Int) throws {
        for number in 1...4 {
            let token = String(repeating: "0\(number)", count: 32)
            let value =
                #"{"v":1,"environment":"production","app":"com.example.Home","#
                + #""installation":"i\#(number)","handler":"H","targets":[{"class":"control","#
                + #""token":"\#(token)","shows":[{"kind":"k","subjects":["s\#(number)","all"]}]}]}"#
            try send(
                producer, topic, 0, key: Array("production/com.example.Home/i\(number)/H".utf8),
                value: Array(value.utf8))
        }
    }

    private static func send(
        _ producer: RecordProducer, _ topic: Int, _ partition: Int32, key: [UInt8]?,
        value: [UInt8]?,
        flushes: Bool = true
    ) throws {
        let acceptance = (key ?? []).withUnsafeBytes { keyBytes in
            (value ?? []).withUnsafeBytes { valueBytes in
                producer.produce(
                    topic: topic, partition: partition, key: key == nil ? nil : keyBytes,
                    value: value == nil ? nil : valueBytes, ticket: 1)
            }
        }
        try #require(acceptance == .accepted)
        guard flushes else { return }
        try #require(producer.flush(timeout: .seconds(10)))
        producer.poll(now: PlannerLoop.clock()) { _, _ in }
    }

    // MARK: Time

    var now: Now {
        let now = PlannerLoop.clock()
        return Now(monotonic: now.monotonic + passed, wall: now.wall + passed + wallAhead)
    }

    func turn() { _ = loop.turn(now: now) }

    /// Turns until something is true.
    func until(_ what: String, _ condition: () -> Bool) async throws {
        try await waitUntil(what) {
            turn()
            return condition()
        }
    }

    /// Turns for a while, in which what must not happen would.
    func rest() async throws {
        for _ in 0..<15 {
            turn()
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    // MARK: Kafka

    /// Writes an event that names one subject.
    func event(_ subject: String, partition: Int32 = 0) throws {
        try Self.send(producer, Self.plain, partition, key: Array(subject.utf8), value: [])
    }

    /// Writes orders with schema 1, whose subjects are `sn`: in one batch, so that all are lent
    /// before the first of them can hold its partition.
    func order(_ numbers: Int8..., partition: Int32 = 0) throws {
        for number in numbers {
            try Self.send(
                producer, Self.orders, partition, key: nil,
                value: [0, 0, 0, 0, 1, UInt8(bitPattern: number << 1)],
                flushes: number == numbers.last)
        }
    }

    /// Another worker has deferred a push to control 1, which is due and lives for an hour from the
    /// true time on.
    func deferredPush() throws {
        let trueTime = PlannerLoop.clock().wall
        let token = String(repeating: "01", count: 32)
        let value =
            #"{"v":1,"notBefore":"\#(trueTime.rfc3339)","#
            + #""expiresAt":"\#((trueTime + .seconds(3600)).rfc3339)","class":"control","#
            + #""sourceAt":"\#(trueTime.rfc3339)","attempts":0}"#
        try Self.send(
            producer, Self.deferred, 0,
            key: Array("production/com.example.Home.push-type.controls/\(token)".utf8),
            value: Array(value.utf8))
    }

    /// An operator pauses a topic, or resumes it.
    func pause(topic: Int, _ isPaused: Bool = true) throws {
        let scope = Restriction.Scope.topic(loop.plan.consumedTopics[topic])
        let value =
            isPaused
            ? RestrictionEncoder.value(Restriction(.pause, by: "anna", at: now.wall)) : nil
        try Self.send(
            producer, topics.firstIndex(of: loop.plan.tableTopics[2])!, 0,
            key: RecordKey.restriction(scope), value: value)
    }

    /// The registry knows schema 1 from now on.
    func schemaArrives() throws {
        let text = #"{"type":"record","name":"r","fields":[{"name":"id","type":"int"}]}"#
        let schema = try RecordSchema(SchemaText(language: .avro, text: Array(text.utf8)))
        registry.answer.withLock { $0 = .known(schema) }
    }

    /// The registry gives no schema, for this reason.
    func schemaIsRefused(_ cause: String) {
        registry.answer.withLock { $0 = .unreachable(cause) }
    }

    /// How often schema 1 was asked for.
    var schemaLookups: Int { registry.lookups.load(ordering: .relaxed) }

    /// The group gives these partitions.
    func give(_ partitions: [(topic: Int, partition: Int32)]) {
        announce(.assignPartitions, partitions)
    }

    /// The group wants these partitions back, or says that it has given them away.
    func revoke(_ partitions: [(topic: Int, partition: Int32)], isLost: Bool = false) {
        announce(.revokePartitions, partitions, isLost: isLost)
    }

    private func announce(
        _ code: ErrorCode, _ partitions: [(topic: Int, partition: Int32)], isLost: Bool = false
    ) {
        let list = TopicPartitionList()
        for one in partitions {
            list.append(
                topic: loop.plan.consumedTopics[one.topic], partition: one.partition)
        }
        loop.consumer!.rebalances.append(
            Rebalance(code: code, partitions: list, isLost: isLost))
        loop.consumer!.answerRebalances(now)
    }

    /// Turns until these partitions are ours and can be read.
    func start(_ partitions: [(topic: Int, partition: Int32)]) async throws {
        for port in ports {
            for pool in loop.plan.routing.pools.indices {
                port.publish(capacity: 100, of: PoolID(rawValue: UInt16(pool)))
            }
        }
        try await until("the consumer") { loop.consumer != nil }
        give(partitions)
        try await until("the partitions") {
            partitions.allSatisfy { row($0.topic, $0.partition)?.hasReachedEnd == true }
        }
    }

    /// What the consumer knows of a partition that is ours; nil for another.
    func row(_ topic: Int, _ partition: Int32 = 0) -> PartitionTable.Row? {
        loop.consumer?.partitions[topic, partition].flatMap { $0.isAssigned ? $0 : nil }
    }

    func id(_ topic: Int, _ partition: Int32 = 0) -> AssignmentID {
        row(topic, partition)!.assignment
    }

    /// The offset that the loop would store.
    func position(_ topic: Int, _ partition: Int32 = 0) -> Int64? {
        position(of: id(topic, partition))
    }

    func position(of id: AssignmentID) -> Int64? {
        loop.positions(of: [id], now: now).first?.offset
    }

    var status: WorkerStatus { loop.status(now: now) }

    // MARK: APNs

    /// Takes what the port was given since the last call, and returns all that it has not answered.
    @discardableResult
    func submitted(_ port: Int = 0) -> [PushSlot] {
        let batch = UnsafeMutableBufferPointer<PushSlot>.allocate(capacity: 256)
        defer { batch.deallocate() }
        for isPatient in [false, true] {
            let count = ports[port].take(into: batch, isPatient: isPatient)
            taken[port] += batch[..<count]
            if isPatient { patientCount += count }
        }
        return taken[port]
    }

    /// All pushes that the ports have.
    var inFlight: Int { ports.indices.reduce(0) { $0 + submitted($1).count } }

    /// APNs answers everything that a port has.
    func answer(_ port: Int = 0, status: UInt16 = 200, reason: APNSReason = .none) {
        let outcomes = submitted(port).map {
            PushOutcome(slot: $0, kind: .answered, status: status, reason: reason)
        }
        taken[port] = []
        outcomes.withUnsafeBufferPointer { ports[port].deliver($0) }
    }

    func answerAll() { for port in ports.indices { answer(port) } }

    /// How many pushes APNs has accepted.
    var accepted: Int { loop.pipeline.counters.accepted }

    /// Reloads the configuration, with these records in `kafka.skip`.
    func reload(skip: String) throws {
        control.adopt(
            try Self.configured(
                "", skip: skip, ["LAMPLIGHTER_KAFKA_BOOTSTRAP": kafka.bootstrap]))
    }
}
