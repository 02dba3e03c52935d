// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
internal import Delivery
package import Intake
package import KafkaLog
internal import OpenSSL
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
    package var bindings: [TopicBinding]
    /// The binding of the topic that shards are written to; nil if no topic can take them.
    var shardBinding: Int?
    /// The binding of the topic that canaries are written to; nil if none are.
    var canaryBinding: Int?
    package var tableTopics: [String]
    /// The partitions of `consumedTopics` together; nil where Kafka has not said.
    var consumedPartitions: Int?
    package var producedTopics: [String]
    /// The partitions of each of `producedTopics`; empty where Kafka has not said.
    var producedPartitions: [Int] = []
    package var pipeline = PipelineSettings()
    package var shutdownTimeout: Duration
    /// The note of the record being read, in a running worker; nil if it is not configured.
    package var recordInHand: RecordInHand?
    /// The `host:port` of APNs for each pool.
    private var endpoints: [String] = []
    private var skipped: Set<Configuration.Kafka.RecordCoordinates>

    // Positions in `tableTopics` and `producedTopics`.
    static let registrationsTable = 0
    static let suppressionsTable = 1
    static let controlsTable = 2
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
        return canaryBinding == shardBinding ? Self.shardsProduced : producedTopics.count - 1
    }

    package var canaryTopic: String? { canaryBinding.map { eventTopics[$0] } }

    /// The position of `deferredTopic` in `consumedTopics`.
    var deferredConsumed: Int { eventTopics.count }

    /// The topics that are read in the group.
    var consumedTopics: [String] { eventTopics + [deferredTopic] }

    package init(_ configuration: Configuration) {
        let topics = configuration.kafka.topics
        kafka = configuration.kafka.clientSettings
        startFrom = configuration.startFrom
        let events = configuration.kafka.events.sorted { $0.key < $1.key }
        eventTopics = events.map(\.key)
        deferredTopic = topics.deferred
        bindings = events.map(\.value)
        tableTopics = [topics.registrations, topics.suppressions, topics.controls]
        producedTopics = [topics.suppressions, topics.deadLetters, topics.deferred]
        shardBinding = bindings.firstIndex(where: \.holdsOwnEvents)
        if let shardBinding { producedTopics.append(eventTopics[shardBinding]) }
        if configuration.canary.every != nil {
            canaryBinding = configuration.canaryBinding(of: bindings)
        }
        if let canaryBinding, canaryBinding != shardBinding {
            producedTopics.append(eventTopics[canaryBinding])
        }
        precondition(
            tableTopics[Self.registrationsTable] == topics.registrations
                && tableTopics[Self.suppressionsTable] == topics.suppressions
                && tableTopics[Self.controlsTable] == topics.controls
                && producedTopics[Self.suppressionsProduced] == topics.suppressions
                && producedTopics[Self.deadLettersProduced] == topics.deadLetters
                && producedTopics[Self.deferredProduced] == topics.deferred
                && producedTopics.count <= Self.shardsProduced + 2,
            "a position names another topic")
        shutdownTimeout = configuration.delivery.shutdownTimeout
        skipped = Set(configuration.kafka.skip)
        for (name, credential) in configuration.apns.credentials.sorted(by: { $0.key < $1.key }) {
            routing.add(
                credential: name, apps: credential.apps, environments: credential.environments)
        }
        endpoints = routing.pools.map {
            let endpoint = configuration.apns.endpoint(of: $0)
            return "\(endpoint.host):\(endpoint.port)"
        }
        pipeline = PipelineSettings(configuration, eventTopics: eventTopics)
    }

    /// The `host:port` that pushes of the pool are sent to.
    func endpoint(of pool: PoolID) -> String { endpoints[Int(pool.rawValue)] }

    func topic(of part: SetAsideTally.Part) -> String {
        switch part {
        case .registrations, .registrationRows: tableTopics[Self.registrationsTable]
        case .suppressions: tableTopics[Self.suppressionsTable]
        case .deferred: deferredTopic
        case .restrictions: tableTopics[Self.controlsTable]
        }
    }

    func topic(of source: RecordTimeWatch.Source) -> String {
        switch source {
        case .events(let position): eventTopics[position]
        case .deferred: deferredTopic
        case .table(let position): tableTopics[position]
        }
    }

    /// Adopts the values that may change while the worker runs, apart from the pipeline's settings,
    /// which the pipeline adopts itself.
    mutating func adopt(_ other: WorkerPlan) {
        precondition(
            other.eventTopics == eventTopics && other.bindings.count == bindings.count,
            "the topics of a running worker do not change")
        bindings = other.bindings
        shutdownTimeout = other.shutdownTimeout
        skipped = other.skipped
        pipeline.events.changeTTL = other.pipeline.events.changeTTL
        pipeline.events.payloadTTL = other.pipeline.events.payloadTTL
    }

    func isSkipped(topic: Int, partition: Int32, offset: Int64) -> Bool {
        guard !skipped.isEmpty else { return false }
        return skipped.contains(
            Configuration.Kafka.RecordCoordinates(
                topic: eventTopics[topic], partition: partition, offset: offset))
    }

    /// How long a stop may wait for pushes to end.
    var stopPatience: Duration { max(.zero, shutdownTimeout - Self.closingReserve) }

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

    var stopsInTime: Bool { shutdownTimeout >= Self.shutdownLeast }

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
        slots = delivery.queuedMax
        payloadBytesMax = delivery.queuedBytesMax
        holdMax = delivery.holdMax
        deferredMax = delivery.deferredMax
        deferredBytesMax = delivery.queuedBytesMax
        registrationGrace = configuration.index.registrationGrace
        attemptsMax = delivery.attemptsMax
        retryBackoff = delivery.backoff
        breakerBackoff = delivery.backoff
        coolDownBackoff = delivery.cooldown
        tokenGuard = delivery.tokenGuard
        for type in PushType.builtInTypes {
            let rule = configuration.planning.wire[type]
            wireDefaults.priorities[Int(type.rawValue)] = rule.priority ?? 0
            wireDefaults.expirations[Int(type.rawValue)] = rule.expiration
        }
        splitAbove = configuration.planning.splitAbove
        spread = configuration.planning.spread
        spreadAbove = configuration.planning.spreadAbove
        fanOutMax = configuration.planning.fanOutMax ?? .max
        restrictions = configuration.planning.restrictions
        minimumGaps = MinimumGaps(configuration.planning.minimumGap)
        budgets = BudgetSettings(configuration.planning.budget)
        deadLetterTokensMax = configuration.deadLetters.tokensMax
        deadLetterEventBytesMax = configuration.deadLetters.eventBytesMax
        deadLetterRepeatAfter = configuration.deadLetters.repeatAfter
        events.changeTTL = configuration.planning.ttl
        events.payloadTTL = configuration.planning.payloadTTL
        events.allowKindWide = configuration.intake.allowKindWide
        events.recordBytesMax = configuration.intake.recordBytesMax
        if configuration.otlp.endpoint != nil {
            events.readsTraceparent = true
            tracing = TraceSettings(ratio: configuration.otlp.sampling) { token in
                Hexadecimal.encode(SHA256Digest.of(Array(token)).prefix(8))
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

extension BudgetSettings {
    init(_ configured: Configuration.Budget) {
        self.init()
        limits[Int(PushType.controls.rawValue)] = configured.controls
        limits[Int(PushType.widgets.rawValue)] = configured.widgets
        limits[Int(PushType.background.rawValue)] = configured.background
        isThinning = configured.thin
    }
}

extension MinimumGaps {
    init(_ configured: Configuration.MinimumGap) {
        self.init()
        gaps[Int(PushType.controls.rawValue)] = configured.controls
        gaps[Int(PushType.widgets.rawValue)] = configured.widgets
        gaps[Int(PushType.background.rawValue)] = configured.background
        for (app, own) in configured.apps {
            var gaps: [PushType: Duration] = [:]
            gaps[.controls] = own.controls
            gaps[.widgets] = own.widgets
            gaps[.background] = own.background
            gapsOfApps[app] = gaps
        }
    }
}
