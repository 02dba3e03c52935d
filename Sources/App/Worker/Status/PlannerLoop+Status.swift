// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Audience
internal import Delivery
internal import Intake
internal import KafkaLog
internal import Lifecycle
internal import OTLPExporter
internal import Pipeline
internal import PushModel

/// Makes the `WorkerStatus` that listeners ask for.
extension PlannerLoop {
    mutating func status(now: Now) -> WorkerStatus {
        var status = WorkerStatus(
            phase: control.currentPhase, at: now.wall, index: indexStatus(now: now),
            hasJoinedGroup: consumer?.isGroupMember ?? false, counters: pipeline.counters,
            load: pipeline.load(now: now))
        tellKafka(&status, now: now)
        tellEvents(&status)
        tellPushes(&status, now: now)
        status.restrictions = pipeline.restrictions.inForce
        status.lacksRestrictions = lifecycle.restrictionsWait.isGivenUp
        status.schemas = schemaStatus
        status.memory = pipeline.memory
        status.clockDoubt = clockDoubt(now: now)
        status.canary = canaryStatus(now: now)
        status.shadow = shadowStatus
        status.outcomes = outcomes?.status(now: now)
        status.renameShadowed()
        status.holdMax = max(
            plan.pipeline.holdMax, plan.pipeline.registrationGrace, plan.pipeline.spread)
        status.promptTypes = promptTypes
        status.export = pipeline.traceCounts.map { counts in
            var export = WorkerStatus.Export()
            export.traced = counts
            export.spansDropped = counts.spansDropped + control.spans.dropped
            return export
        }
        return status
    }

    /// The group, its partitions, and the topics that are written to.
    private mutating func tellKafka(_ status: inout WorkerStatus, now: Now) {
        status.groupWait = consumer?.groupWait(now: now)
        status.missingTopics = consumer?.missingTopics ?? []
        status.openTransactions = consumer?.openTransactions(now: now) ?? []
        status.partitions = (consumer?.assignedPartitions ?? []).map { topic, partition in
            WorkerStatus.Partition(
                topic: plan.consumedTopics[topic], partition: partition,
                lag: topic == plan.deferredConsumed
                    ? nil : consumer?.lag(topic: topic, partition: partition))
        }
        status.consumedPartitions = plan.consumedPartitions
        status.unavailablePartitions = consumer?.unavailableCount ?? 0
        status.held = heldPartitions(now: now)
        status.consumedTopics = plan.consumedTopics
        status.producedTopics = plan.producedTopics
        status.troubledTopics = records.troubled(pipeline, plan, now: now)
        status.unread = unread
        status.setAside = setAside
        status.misplaced = tables.misplaced
        status.deadLetters = pipeline.deadLetters
        status.redelivered = consumer?.redelivered ?? 0
    }

    /// What became of the events that were read.
    private func tellEvents(_ status: inout WorkerStatus) {
        status.events = events
        status.withheldEvents = pipeline.withheldEvents
        status.hasRoomForEvents = pipeline.hasRoomForEvents
        status.topicTurns = plan.eventTopics.enumerated().map { number, topic in
            WorkerStatus.TopicTurn(
                topic: topic, waits: holds.turns.waits[number],
                isWaiting: holds.turns.isWaiting(number))
        }
        status.unmatched = unmatched
        status.passedOver = passedOver
        status.recordNotes = recordNotes
        status.recordNoteTotals = recordNoteTotals
        status.absences = zip(plan.eventTopics, pipeline.recordNotes).flatMap { topic, notes in
            notes.absences.sorted { $0.key < $1.key }.map {
                WorkerStatus.Absence(topic: topic, field: $0.value.field, count: $0.value.count)
            }
        }
    }

    /// What became of pushes, and the way to APNs.
    private mutating func tellPushes(_ status: inout WorkerStatus, now: Now) {
        status.pushes = pipeline.pushTally.counts
        status.eventToAccepted = pipeline.pushTally.acceptanceTimes
        status.budgets = pipeline.budgetUses(now: now)
        status.subjectsOverBudget = pipeline.subjectsOverBudget(now: now)
        status.demand = pipeline.demand(now: now)
        status.breakers = pipeline.trippedBreakers(now: now)
        let routing = plan.routing
        status.breakerPhases = pipeline.breakerPhases.map {
            WorkerStatus.BreakerPhase(of: $0.of, $0.phase, routing)
        }
        status.transports = delivery.all.map(\.counters.snapshot)
        status.roundTrips = delivery.roundTrips
        status.connectTimes = delivery.connectTimes
        status.pools = pools(tripped: status.breakers, now: now)
    }

    private var promptTypes: Set<PushType> {
        guard plan.pipeline.spread == .zero, plan.bindings.allSatisfy({ $0.delay == .zero })
        else { return [] }
        let gaps = plan.pipeline.minimumGaps
        return Set(
            PushType.allTypes.filter { type in
                gaps[type] == .zero
                    && gaps.apps.values.allSatisfy { $0[type] ?? .zero == .zero }
            })
    }

    private var unread: [(topic: String, count: Int)] {
        let ofTables = tables.topics.enumerated().map { number, topic in
            (topic, Int(tables.progress(topic: number).remaining))
        }
        let ofGroup = plan.consumedTopics.enumerated().map { number, topic in
            (topic, Int(consumer?.unread(topic: number) ?? 0))
        }
        return ofGroup + ofTables
    }

    /// What was set aside of the compacted topics.
    var setAside: [WorkerStatus.SetAsideCount] {
        let tally = pipeline.setAside
        return SetAsideTally.Part.allCases.flatMap { part in
            tally[part].map { reason, count in
                WorkerStatus.SetAsideCount(
                    topic: plan.topic(of: part),
                    unit: part == .registrationRows ? "rows" : "records", reason: reason,
                    count: count)
            }
        }
    }

    private var events: [WorkerStatus.EventCount] {
        plan.eventTopics.indices.flatMap { topic in
            EventTally.Outcome.allCases.map { outcome in
                WorkerStatus.EventCount(
                    topic: plan.eventTopics[topic], outcome: "\(outcome)",
                    count: pipeline.eventTally.count(outcome, topic: topic))
            }
        }
    }

    /// The events whose subject nobody shows, by topic.
    var unmatched: [WorkerStatus.UnmatchedSubjects] { subjects(.unmatched) }

    /// The events whose subject is shown by no token that they are for, by topic.
    var passedOver: [WorkerStatus.UnmatchedSubjects] { subjects(.passedOver) }

    /// What events had that their bindings could not judge, the most frequent first.
    private var recordNotes: [WorkerStatus.RecordNoteCount] {
        zip(plan.eventTopics, pipeline.recordNotes).flatMap { topic, notes in
            notes.counts.map { note, count in
                WorkerStatus.RecordNoteCount(topic: topic, message: note.message, count: count)
            }
        }.sorted { ($1.count, $0.message) < ($0.count, $1.message) }
    }

    private var recordNoteTotals: [WorkerStatus.RecordNoteTotal] {
        zip(plan.eventTopics, pipeline.recordNotes).flatMap { topic, notes in
            RecordNote.Kind.allCases.map { kind in
                WorkerStatus.RecordNoteTotal(
                    topic: topic, kind: kind.rawValue, count: notes.totals[kind] ?? 0)
            }
        }
    }

    private func subjects(
        _ sampled: EventTally.SampledOutcome
    ) -> [WorkerStatus.UnmatchedSubjects] {
        plan.eventTopics.indices.map { topic in
            WorkerStatus.UnmatchedSubjects(
                topic: plan.eventTopics[topic],
                count: pipeline.eventTally.count(sampled.outcome, topic: topic),
                sample: pipeline.eventTally.sample(sampled, topic: topic))
        }
    }

    private func pools(tripped: [TrippedBreaker], now: Now) -> [WorkerStatus.Pool] {
        plan.routing.pools.enumerated().compactMap { number, pool in
            let id = PoolID(rawValue: UInt16(number))
            guard pipeline.isInUse(id) else { return nil }
            var said = WorkerStatus.Pool(
                credential: pool.credential, environment: pool.environment.name,
                service: pool.service, endpoint: plan.endpoint(of: id))
            if let breaker = tripped.first(where: { $0.name == said.breakerName }) {
                said.isTripped = true
                said.isGivenUpAsSilent = breaker.cause == .silent
                said.probeIn = breaker.probeIn
            }
            for port in delivery.all {
                let streams = port.counters.streams(of: id)
                said.connections += streams.connections
                said.connectionsIll += streams.ill
                said.streams += streams.inFlight
                said.streamsMax += streams.limit
                said.failedConnects += streams.failedConnects
                if streams.hasReachedAPNs { said.hasReachedAPNs = true }
                said.connected.add(port.counters.connections(of: id))
                // The pool forgets its failures once it is idle, and the breaker stays open.
                if streams.failedConnects > 0 || said.isGivenUpAsSilent, said.connectError == nil,
                    let error = port.counters.connectError(of: id)
                {
                    said.connectFailed(error)
                }
            }
            said.silence = pipeline.silence(of: id, now: now)
            said.faultsInARow = pipeline.faultsInARow(of: id)
            said.refusals = pipeline.credentialRefusals(of: id)
            return said
        }
    }

    private func indexStatus(now: Now) -> WorkerStatus.Index {
        let statistics = pipeline.audience.statistics
        var index = WorkerStatus.Index()
        index.tables = tables.topics.indices.map { topic in
            let progress = tables.progress(topic: topic)
            return WorkerStatus.Table(
                topic: tables.topics[topic], partitions: progress.partitions,
                unread: progress.remaining, age: tables.age(topic: topic, now: now))
        }
        index.recordsRead = tables.recordsRead
        index.tokens = statistics.tokens
        index.tokensOf = zip(plan.routing.routes, statistics.tokensOfRoutes).compactMap {
            route, tokens in
            guard tokens > 0 else { return nil }
            return WorkerStatus.TokenCount(
                app: plan.routing.name(of: route.app), environment: route.environment.name,
                class: route.tokenClass.name, tokens: tokens)
        }
        index.subjects = statistics.subjects
        index.subscriptions = statistics.subscriptions
        index.registrations = statistics.registrations
        index.suppressions = statistics.suppressions
        index.bytes = statistics.totalBytes
        index.elapsed = now.monotonic - lifecycle.startedAt
        index.snapshotAge = snapshots?.age
        index.isUnanswered = tables.isUnanswered
        index.connectionFailure = tables.currentConnectionFailure(now: now)
        return index
    }
}

extension WorkerStatus.BreakerPhase {
    fileprivate init(
        of owner: BreakerOwner, _ phase: CircuitBreaker.Phase, _ routing: RoutingTable
    ) {
        switch owner {
        case .pool(let id):
            self.init(
                credential: routing[id].credential, environment: routing[id].environment,
                isForBroadcasts: routing[id].isForBroadcasts, phase: phase)
        case .route(let id):
            let route = routing[id]
            self.init(
                credential: routing[route.pool].credential, environment: route.environment,
                app: routing.name(of: route.app), apnsTopic: route.apnsTopic, phase: phase)
        }
    }
}
