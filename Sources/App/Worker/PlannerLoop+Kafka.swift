// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import RecordFormats

extension PlannerLoop {
    // MARK: Registrations and suppressions

    mutating func readTables(limit: Int, now: Now) -> Bool {
        let limit = min(limit, pipeline.roomForRegistrations)
        guard limit > 0 else { return false }
        var isFirst = true
        let read = tables.poll(now: now, limit: limit) { record in
            if isFirst {
                isFirst = false
                recordTimes.sampled(
                    record.timestampMilliseconds, of: .table(record.topic), now: now)
            }
            let problem =
                record.topic == WorkerPlan.registrationsTable
                ? pipeline.registrationRecord(
                    key: record.key, value: record.value,
                    timestamp: WallTime(milliseconds: record.timestampMilliseconds), now: now)
                : pipeline.suppressionRecord(key: record.key, value: record.value)
            if let problem {
                watch.unreadable(
                    problem, of: record, topic: plan.tableTopics[record.topic], now: now,
                    logger: logger)
            }
        }
        if consumer == nil, stop == nil, tables.isCaughtUp {
            // What was fetched ahead of the index is free now, and is not needed again.
            Allocator.trim()
            startConsuming(now: now)
        }
        return read == limit
    }

    /// Everything registered so far is in the index: now the first event may be read.
    private mutating func startConsuming(now: Now) {
        let statistics = pipeline.audience.statistics
        logger.notice(
            "the index is complete",
            metadata: [
                "tokens": .stringConvertible(statistics.tokens),
                "subjects": .stringConvertible(statistics.subjects),
                "subscriptions": .stringConvertible(statistics.subscriptions),
                "installations": .stringConvertible(statistics.registrations),
            ])
        if !plan.stopsInTime {
            logger.warning(
                "each stop sends its last events again: set delivery.shutdownTimeout higher",
                metadata: ["least": "\(plan.pipeline.registrationGrace + .seconds(6))"])
        }
        do {
            let consumer = try EventConsumer(
                settings: plan.kafka, topics: plan.eventTopics + [plan.deferredTopic],
                replayed: [plan.deferredConsumed], startFrom: plan.startFrom,
                prefetchMax: Audience.prefetchMax, logger: logger)
            try epoll.add(consumer.wakeDescriptor, for: .read, tag: 4)
            self.consumer = consumer
            control.enter(.running)
        } catch {
            end = .clientFailed("the event topics cannot be read: \(error)")
        }
    }

    // MARK: Events

    mutating func readEvents(limit: Int, now: Now) -> Bool {
        guard let consumer else { return false }
        let load = pipeline.load
        let half = plan.pipeline.slots / 2
        switch valve.next(
            hasRoom: pipeline.hasRoomForEvents && stop == nil,
            isRelaxed: load.queued + load.inFlight + load.resting <= half, now: now.monotonic)
        {
        case .hold: return false
        case .pause: consumer.pauseAll(now: now) { $0 != plan.deferredConsumed }
        case .resume: consumer.resumeAll(now: now) { $0 != plan.deferredConsumed }
        case .poll: break
        }
        throttleDeferred(consumer, now: now)
        // While the partitions are paused the poll brings no records, and must go on all the same.
        let limit = valve.isPaused ? limit : min(limit, pipeline.roomForEvents)
        var isFirst = true
        let read = consumer.poll(now: now, limit: limit) { topic, key in
            if topic != plan.deferredConsumed { pipeline.prefetch(key: key, binding: topic) }
        } _: { record in
            // A record may follow the fact of its partition's assignment within one batch.
            if consumer.hasFacts { takeFacts(of: consumer, now: now) }
            if isFirst {
                isFirst = false
                recordTimes.sampled(
                    record.timestampMilliseconds,
                    of: record.topic == plan.deferredConsumed ? .deferred : .events(record.topic),
                    now: now)
            }
            readEvent(record, now: now)
        }
        takeFacts(of: consumer, now: now)
        if read > 0 { schedule.wasBusy(now) }
        return read == limit
    }

    private mutating func readEvent(_ record: borrowing KafkaRecord, now: Now) {
        guard let assignment = record.assignment else {
            preconditionFailure("a record of a partition that is not ours")
        }
        if record.topic == plan.deferredConsumed {
            return readDeferred(record, of: assignment, now: now)
        }
        if plan.isSkipped(topic: record.topic, partition: record.partition, offset: record.offset) {
            pipeline.skippedRecord(of: assignment, offset: record.offset, now: now)
            return
        }
        let event = EventRecord(
            binding: record.topic, key: record.key, value: record.value,
            timestamp: WallTime(milliseconds: record.timestampMilliseconds))
        plan.recordInHand?.take(
            topic: record.topic, partition: record.partition, offset: record.offset)
        pipeline.eventRecord(event, of: assignment, offset: record.offset, now: now) { name in
            record.header(named: name)
        } headers: {
            record.headers
        }
        plan.recordInHand?.putDown()
    }

    // MARK: Deferred pushes

    private mutating func readDeferred(
        _ record: borrowing KafkaRecord, of assignment: AssignmentID, now: Now
    ) {
        func number(_ header: String) -> Int64? {
            record.header(named: header).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
        }
        let deferred = DeferredRecord(
            offset: record.offset, key: record.key, value: record.value,
            endedOffset: number(DeferredPush.endedHeader),
            endedPayloadAt: number(DeferredPush.endedPayloadHeader).map(
                WallTime.init(milliseconds:)))
        let problem = pipeline.deferredRecord(deferred, of: assignment, now: now)
        if let problem {
            watch.unreadable(
                problem, of: record, topic: plan.deferredTopic, now: now, logger: logger)
        }
    }

    /// What does not fit into memory waits in Kafka. A partition that fills it before its end is
    /// reached must begin all the same: its pushes may be sent once more than owed.
    private mutating func throttleDeferred(_ consumer: EventConsumer, now: Now) {
        let hasRoom = pipeline.hasRoomForDeferredRecords
        guard hasRoom == isDeferredPaused, revoke == nil else { return }
        isDeferredPaused = !hasRoom
        if hasRoom {
            consumer.resumeAll(now: now) { $0 == plan.deferredConsumed }
        } else {
            logger.warning("too many deferred pushes for delivery.deferredMax: they wait in Kafka")
            consumer.pauseAll(now: now) { $0 == plan.deferredConsumed }
            for id in pipeline.deferredAssignments {
                pipeline.deferredReplayed(id, now: now)
            }
        }
    }

    // MARK: What happens to the consumer

    private mutating func takeFacts(of consumer: EventConsumer, now: Now) {
        for fact in consumer.takeFacts() {
            switch fact {
            case .assigned(let assignments): assigned(assignments, of: consumer, now: now)
            case .revoking(let revoked):
                revoke = RevokeDrain(
                    assignments: revoked, deadline: now.monotonic + plan.pipeline.drainMax)
            case .lost(let lost): unassign(lost)
            case .endOfPartition(let id): pipeline.deferredReplayed(id, now: now)
            case .offsetsLost(let loss): watch.lost(loss, plan: plan, logger: logger)
            case .unavailable(let partitions):
                watch.unavailable(partitions, topics: consumer.topics, logger: logger)
            case .availableAgain(let topic, let partition):
                logger.notice(
                    "a partition is read again",
                    metadata: ["partition": "\(consumer.topics[topic])/\(partition)"])
            case .warning(let warning):
                logger.warning(
                    "Kafka: \(warning.text)",
                    metadata: [
                        "code": "\(warning.code)",
                        "suppressed": .stringConvertible(warning.suppressed),
                    ])
            case .restartNeeded(let error):
                logger.warning("reading of events begins anew", metadata: ["cause": "\(error)"])
                restarts.ask()
            case .fatal(let error) where error.code == .fencedInstanceID:
                fenced(error, now: now)
            case .fatal(let error):
                end = .clientFailed("Kafka's consumer has failed for good: \(error)")
            }
        }
    }

    private mutating func assigned(
        _ assignments: [Assignment], of consumer: EventConsumer, now: Now
    ) {
        if pipeline.eventAssignments.isEmpty, pipeline.deferredAssignments.isEmpty {
            valve.reset()
            isDeferredPaused = false
        }
        for assignment in assignments {
            if assignment.topic == plan.deferredConsumed {
                pipeline.deferredAssigned(assignment.id, partition: assignment.partition)
                continue
            }
            pipeline.assigned(
                assignment.id, topic: UInt16(assignment.topic), partition: assignment.partition,
                startOffset: assignment.startOffset)
        }
        // Those that begin later than the others wait with them.
        if valve.isPaused { consumer.pauseAll(now: now) { $0 != plan.deferredConsumed } }
        if isDeferredPaused {
            consumer.pauseAll(now: now) { $0 == plan.deferredConsumed }
            for assignment in assignments { pipeline.deferredReplayed(assignment.id, now: now) }
        }
        AssignmentReport.tell(
            assignments, topics: plan.eventTopics + [plan.deferredTopic],
            startFrom: plan.startFrom, logger: logger)
    }

    private mutating func unassign(_ ids: [AssignmentID]) {
        for id in ids { pipeline.unassigned(id) }
        if let drained = revoke, drained.assignments.allSatisfy(ids.contains) { revoke = nil }
        logger.info("given up", metadata: ["partitions": .stringConvertible(ids.count)])
    }

    /// The group wants partitions back, and waits: what can end of them soon may end, then they are
    /// let go.
    mutating func advanceRevoke(now: Now) {
        guard let drain = revoke, let consumer else { return }
        pipeline.flushDeadLetters(now: now, all: true)
        let isUseless = revoke!.watch.isOver(pipeline.load, pipeline.counters, now: now)
        let isDrained = drain.assignments.allSatisfy { id in
            isUseless ? pipeline.isPastGrace(id, now: now) : pipeline.isDrained(id, now: now)
        }
        guard isDrained || drain.deadline <= now.monotonic else { return }
        consumer.completeRevoke(store: positions(of: drain.assignments, now: now), now: now)
        revoke = nil
        unassign(drain.assignments)
        takeFacts(of: consumer, now: now)
    }

    // MARK: Offsets

    mutating func storeOffsets(now: Now) {
        let stored = consumer?.store(positions(of: pipeline.eventAssignments, now: now)) ?? 0
        schedule.stored(anything: stored > 0, now)
    }

    mutating func positions(of ids: [AssignmentID], now: Now) -> [StoredPosition] {
        ids.compactMap { id in
            pipeline.committableOffset(id, now: now).map { StoredPosition(id, offset: $0) }
        }
    }

    // MARK: Watching

    /// A consumer that gets nothing although it should is opened anew.
    mutating func watchOver(now: Now) {
        control.publish(
            WorkerControl.Snapshot(counters: pipeline.counters, load: pipeline.load))
        flow.report(
            pipeline.counters, load: pipeline.load, unavailable: consumer?.unavailableCount ?? 0,
            now: now, logger: logger)
        recordTimes.report(
            pipeline.takeExpiredEvents(), unread: consumer?.unread ?? 0, now: now, logger: logger
        ) { [plan] source in plan.topic(of: source) }
        tables.watch(now: now)
        tableWatch.report(tables.lags(now: now), topics: tables.topics, logger: logger)
        watch.report(pipeline.trippedBreakers(now: now), logger: logger)
        watch.report(troubledTopics(now: now), now: now, logger: logger)
        watch.report(pipeline.appsOutOfKinds, logger: logger)
        for warning in tables.takeWarnings() + producer.takeWarnings() {
            logger.warning("Kafka: \(warning.text)", metadata: ["code": "\(warning.code)"])
        }
        if let error = producer.fatalError {
            end = .clientFailed("Kafka's producer has failed for good: \(error)")
        }
        if let error = tables.failure {
            end = .clientFailed("registrations or suppressions cannot be followed: \(error)")
        }
        guard let consumer, stop == nil, revoke == nil else { return }
        let stalled = consumer.stalledPartitions(now: now)
        if !stalled.isEmpty {
            logger.error(
                "partitions deliver nothing; the consumer is opened anew",
                metadata: ["partitions": .stringConvertible(stalled.count)])
            restarts.ask()
        }
    }

    private mutating func fenced(_ error: RdkafkaError, now: Now) {
        let name = plan.kafka.properties["group.instance.id"]?.text ?? ""
        if restarts.fenced(now: now) {
            logger.warning(
                "the group has given this worker's kafka.groupInstanceID away; it joins anew",
                metadata: ["groupInstanceID": "\(name)", "cause": "\(error)"])
        } else {
            end = .clientFailed(
                "another worker that runs has this one's kafka.groupInstanceID, '\(name)': give each "
                    + "its own. The group gave it away \(ConsumerRestarts.fencingsMax) times within "
                    + "\(ConsumerRestarts.fencingWindow.components.seconds) s")
        }
    }

    mutating func restartConsumer(now: Now) {
        guard restarts.isDue(now: now), let consumer, stop == nil, revoke == nil else { return }
        restarts.restarted(now: now)
        do {
            try consumer.restart(
                storing: positions(of: pipeline.eventAssignments, now: now), timeout: .seconds(5),
                now: now)
        } catch {
            end = .clientFailed("Kafka's consumer cannot be opened anew: \(error)")
        }
        takeFacts(of: consumer, now: now)
    }
}
