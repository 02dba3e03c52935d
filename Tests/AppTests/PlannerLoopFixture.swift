// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import EmbeddedKafka
internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

@testable internal import Worker

/// A planner loop on the test's thread, with an embedded Kafka and without a delivery thread.
final class PlannerLoopFixture {
    let kafka: EmbeddedKafka
    let producer: RecordProducer
    let tables: TableReader
    let port: DeliveryPort
    let control = WorkerControl()
    var loop: PlannerLoop

    /// - Parameters:
    ///   - log: what the loop writes to; by default nothing.
    ///   - prepare: is called before any client connects.
    init(
        log: Logger = Logger(label: "planner") { _ in SwiftLogNoOpLogHandler() },
        prepare: (EmbeddedKafka) throws -> Void = { _ in }
    ) throws {
        let names = WorkerPlan(try configuration(""))
        let topics = names.consumedTopics + names.tableTopics + names.producedTopics
        kafka = try EmbeddedKafka(topics: Dictionary(topics.map { ($0, 1) }) { first, _ in first })
        try prepare(kafka)
        let plan = WorkerPlan(
            try configuration("", ["LAMPLIGHTER_KAFKA_BOOTSTRAP": kafka.bootstrap]))
        let logger = Logger(label: "planner") { _ in SwiftLogNoOpLogHandler() }
        let slab = PushSlab(slots: plan.pipeline.slots)
        port = DeliveryPort(slab: slab, pools: plan.routing.pools.count, plannerWaker: Waker())
        tables = try TableReader(
            settings: plan.kafka, topics: plan.tableTopics, now: PlannerLoop.clock(), logger: logger
        )
        producer = try RecordProducer(
            settings: plan.kafka, topics: plan.producedTopics, logger: logger)
        loop = PlannerLoop(
            pipeline: try PushPipeline(
                routing: plan.routing, bindings: plan.bindings, settings: plan.pipeline, slab: slab),
            plan: plan, ports: [port], tables: tables, producer: producer, control: control,
            epoll: try PlannerLoop.makeEpoll(
                port: port, control: control, tables: tables, producer: producer),
            logger: log)
    }

    var now: Now { PlannerLoop.clock() }

    /// Why the worker must end; nil if it need not.
    var failure: String? {
        switch loop.lifecycle.end {
        case nil, .stopped: nil
        case .clientFailed(let reason), .nameTaken(let reason): reason
        }
    }

    func take(_ fact: ConsumerFact) { loop.take(fact, now: now) }
}
