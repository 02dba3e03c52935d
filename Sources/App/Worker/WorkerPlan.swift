// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
internal import Delivery
package import Intake
package import KafkaLog
package import Pipeline
package import PushModel

/// A configuration, translated into the settings of each part of the worker.
package struct WorkerPlan: Sendable {
    package var routing = RoutingTable()
    package var kafka: KafkaClientSettings
    package var startFrom: StartFrom
    /// The event topics, sorted, so that every worker numbers them alike.
    package var eventTopics: [String]
    /// The topic of deferred pushes. It is read in the group like the event topics, and follows
    /// them in `consumedTopics`.
    package var deferredTopic: String
    /// What a reload may change, beside what it may change of the pipeline.
    package var live: Live
    /// The binding of the topic that shards are written to; nil if no topic can take them.
    var shardBinding: Int?
    /// The binding of the topic that canaries are written to; nil if none are.
    var canaryBinding: Int?
    package var tableTopics: [String]
    /// The partitions of `consumedTopics` together; nil where Kafka has not said.
    var consumedPartitions: Int?
    /// Empty for a shadow.
    package var producedTopics: [String]
    /// The partitions of each of `producedTopics`; empty where Kafka has not said.
    var producedPartitions: [Int] = []
    /// The topic of outcomes; nil where none are written.
    package var outcomesTopic: String?
    package var pipeline = PipelineSettings()
    /// Whether nothing is sent, nor written to a topic.
    package let isShadow: Bool
    /// Where the index is kept; nil for nowhere.
    var snapshotDirectory: String?
    /// How often `lamplighter index keep` writes it.
    var snapshotEvery: Duration
    /// The note of the record being read, in a running worker; nil if it is not configured.
    package var recordInHand: RecordInHand?
    /// The `host:port` of APNs for each pool.
    private var endpoints: [String] = []

    package struct Live: Sendable {
        package var bindings: [TopicBinding]
        package var shutdownTimeout: Duration
        fileprivate var skipped: Set<Configuration.Kafka.RecordCoordinates>
    }

    package var bindings: [TopicBinding] { live.bindings }

    // Positions in `tableTopics` and `producedTopics`.
    static let registrationsTable = 0
    static let suppressionsTable = 1
    static let restrictionsTable = 2
    static let suppressionsProduced = 0
    static let deadLettersProduced = 1
    static let deferredProduced = 2
    static let shardsProduced = 3

    /// The position of the topic in `producedTopics`.
    func producedTopic(_ topic: RecordTopic) -> Int {
        switch topic {
        case .suppressions: Self.suppressionsProduced
        case .deadLetters: Self.deadLettersProduced
        case .deferred: Self.deferredProduced
        case .events: Self.shardsProduced
        }
    }

    /// How many partitions the topic has, as far as is known.
    func partitions(of topic: RecordTopic) -> Int {
        let position = producedTopic(topic)
        return position < producedPartitions.count ? max(1, producedPartitions[position]) : 1
    }

    /// The position of the canaries' topic in `producedTopics`; nil if none are written.
    var canariesProduced: Int? {
        guard let canaryBinding else { return nil }
        let position =
            canaryBinding == shardBinding ? Self.shardsProduced : producedTopics.count - 1
        assert(
            producedTopics[position] == eventTopics[canaryBinding],
            "canaries are written to the topic of their binding")
        return position
    }

    package var canaryTopic: String? { canaryBinding.map { eventTopics[$0] } }

    /// The position of `deferredTopic` in `consumedTopics`.
    var deferredConsumed: Int { eventTopics.count }

    /// The topics that are read in the group. What the workers that send have deferred is none of a
    /// shadow's business.
    var consumedTopics: [String] { eventTopics + (isShadow ? [] : [deferredTopic]) }

    package init(_ configuration: Configuration) {
        let topics = configuration.kafka.topics
        isShadow = configuration.delivery.mode == .shadow
        kafka = configuration.kafka.clientSettings
        startFrom = configuration.startFrom
        let events = configuration.kafka.events.sorted { $0.key < $1.key }
        eventTopics = events.map(\.key)
        deferredTopic = topics.deferred
        live = Live(
            bindings: events.map(\.value),
            shutdownTimeout: configuration.delivery.shutdownTimeout,
            skipped: Set(configuration.kafka.skip))
        tableTopics = [topics.registrations, topics.suppressions, topics.restrictions]
        producedTopics = [topics.suppressions, topics.deadLetters, topics.deferred]
        shardBinding = live.bindings.firstIndex(where: \.holdsOwnEvents)
        if let shardBinding { producedTopics.append(eventTopics[shardBinding]) }
        if configuration.canary.every != nil {
            canaryBinding = configuration.canaryBinding(of: live.bindings)
        }
        if let canaryBinding, canaryBinding != shardBinding {
            producedTopics.append(eventTopics[canaryBinding])
        }
        precondition(
            tableTopics[Self.registrationsTable] == topics.registrations
                && tableTopics[Self.suppressionsTable] == topics.suppressions
                && tableTopics[Self.restrictionsTable] == topics.restrictions
                && producedTopics[Self.suppressionsProduced] == topics.suppressions
                && producedTopics[Self.deadLettersProduced] == topics.deadLetters
                && producedTopics[Self.deferredProduced] == topics.deferred
                && producedTopics.count <= Self.shardsProduced + 2,
            "each position names the topic that it is meant for")
        snapshotDirectory = configuration.index.snapshotDirectory
        snapshotEvery = configuration.index.snapshotEvery
        for (name, credential) in configuration.apns.credentials.sorted(by: { $0.key < $1.key }) {
            routing.add(
                credential: name, apps: credential.apps, environments: credential.environments)
        }
        endpoints = routing.pools.map {
            let endpoint = configuration.apns.endpoint(of: $0)
            return "\(endpoint.host):\(endpoint.port)"
        }
        pipeline = PipelineSettings(configuration, eventTopics: eventTopics)
        outcomesTopic = topics.outcomes
        pipeline.notesEnds = outcomesTopic != nil
        if isShadow { writeNothing() }
    }

    private mutating func writeNothing() {
        producedTopics = []
        (outcomesTopic, pipeline.notesEnds) = (nil, false)
        (shardBinding, canaryBinding, pipeline.canary) = (nil, nil, nil)
    }

    /// The `host:port` that pushes of the pool are sent to.
    func endpoint(of pool: PoolID) -> String { endpoints[Int(pool.rawValue)] }

    func topic(of part: SetAsideTally.Part) -> String {
        switch part {
        case .registrations, .registrationRows: tableTopics[Self.registrationsTable]
        case .suppressions: tableTopics[Self.suppressionsTable]
        case .deferred: deferredTopic
        case .restrictions: tableTopics[Self.restrictionsTable]
        }
    }

    func topic(of source: RecordTimeWatch.Source) -> String {
        switch source {
        case .events(let position): eventTopics[position]
        case .deferred: deferredTopic
        case .table(let position): tableTopics[position]
        }
    }

    /// Adopts the values that may change while the worker runs.
    mutating func adopt(_ other: WorkerPlan) {
        precondition(
            other.eventTopics == eventTopics && other.bindings.count == bindings.count,
            "the topics of a running worker do not change")
        live = other.live
        pipeline.live = other.pipeline.live
    }

    func isSkipped(topic: Int, partition: Int32, offset: Int64) -> Bool {
        guard !live.skipped.isEmpty else { return false }
        return live.skipped.contains(
            Configuration.Kafka.RecordCoordinates(
                topic: eventTopics[topic], partition: partition, offset: offset))
    }

    /// How long a stop may wait for pushes to end.
    var stopPatience: Duration { max(.zero, live.shutdownTimeout - Self.closingReserve) }

    /// How long the last steps may take: flushing records, the last commit, leaving the group.
    static let flushTimeout = Duration.seconds(2)
    static let leaveTimeout = Duration.seconds(2)

    /// The part of the time to stop that is kept for the last steps.
    private static var closingReserve: Duration {
        flushTimeout + EventConsumer.lastCommitTimeout + leaveTimeout
    }

    /// What the process ends after, whatever hangs.
    package static func stopLimit(_ shutdownTimeout: Duration) -> Duration {
        shutdownTimeout + .seconds(1)
    }

    /// The least time to stop in which APNs can answer what is in flight.
    static var shutdownLeast: Duration { PipelineSettings.drainMax + closingReserve }

    var stopsInTime: Bool { live.shutdownTimeout >= Self.shutdownLeast }

    /// The plan of one delivery thread: its routes and pools.
    package func delivery(
        _ configuration: Configuration.APNS, keys: SigningKeys
    ) -> DeliveryPlan {
        let pools = routing.pools.enumerated().map { number, pool in
            let endpoint = configuration.endpoint(of: pool)
            var settings = PoolSettings(
                id: PoolID(rawValue: UInt16(number)), host: endpoint.host,
                port: UInt16(endpoint.port), serverName: endpoint.serverName,
                caFile: configuration.caFile(for: endpoint),
                // A broadcast stands for a million pushes: one connection takes them all.
                connections: pool.isForBroadcasts ? 1...1 : configuration.connectionBounds,
                providerTokens: keys[pool.credential, pool.environment],
                limits: configuration.limits)
            settings.proxy = configuration.proxy
            settings.isForBroadcasts = pool.isForBroadcasts
            // Pushes that wait in delivery hold their offsets, and the planner cannot defer them.
            settings.limits.waitMax = min(settings.limits.waitMax, pipeline.holdMax / 5)
            return settings
        }
        return DeliveryPlan(routing: routing, pools: pools)
    }
}

extension PipelineSettings {
    init(_ configuration: Configuration, eventTopics: [String]) {
        self.init()
        let delivery = configuration.delivery
        sizes.slots = delivery.queuedMax
        sizes.payloadBytesMax = delivery.queuedBytesMax
        sizes.deferredBytesMax = delivery.queuedBytesMax
        sizes.holdMax = delivery.holdMax
        sizes.registrationGrace = configuration.index.registrationGrace
        sizes.deadLetterTokensMax = configuration.deadLetters.tokensMax
        live = Live(configuration)
        if configuration.otlp.endpoint != nil {
            tracing = TraceSettings(ratio: configuration.otlp.sampling) { token in
                PushDescription.tokenID(of: Array(token))
            }
        }
        if let every = configuration.canary.every {
            canary = CanarySettings(
                every: every, app: configuration.canaryApp ?? "",
                subject: configuration.canary.subject, worker: .random(in: .min ... .max))
        }
        self.eventTopics = eventTopics
        seed = UInt64.random(in: .min ... .max)
    }
}

extension PipelineSettings.Live {
    init(_ configuration: Configuration) {
        self.init()
        let delivery = configuration.delivery
        deferredMax = delivery.deferredMax
        attemptsMax = delivery.attemptsMax
        retryBackoff = delivery.backoff
        breakerBackoff = delivery.backoff
        coolDownBackoff = delivery.cooldown
        tokenGuard = delivery.tokenGuard
        let planning = configuration.planning
        splitAbove = planning.splitAbove
        spread = planning.spread
        spreadAbove = planning.spreadAbove
        fanOutMax = planning.fanOutMax ?? .max
        restrictions = planning.restrictions
        minimumGaps = planning.minimumGap
        budgets = planning.budget
        wire = planning.wire
        deadLetterEventBytesMax = configuration.deadLetters.eventBytesMax
        deadLetterRepeatAfter = configuration.deadLetters.repeatAfter
        outcomeSample = OutcomeSample(share: delivery.outcomeSample)
        events.changeTTL = planning.ttl
        events.payloadTTL = planning.payloadTTL
        events.allowKindWide = configuration.intake.allowKindWide
        events.allowInstallations = configuration.intake.allowInstallations
        events.recordBytesMax = configuration.intake.recordBytesMax
        events.leavesShards = delivery.mode == .shadow
        events.readsTraceparent = configuration.otlp.endpoint != nil
    }
}
