// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import KafkaLog
internal import Lifecycle
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
        let (wasCaughtUp, recordsBefore) = (tables.isCaughtUp, tables.recordsRead)
        let read = tables.poll(now: now, limit: limit) { record in
            if isFirst {
                isFirst = false
                reports.recordTimes.sampled(
                    record.timestampMilliseconds, of: .table(record.topic), now: now)
            }
            if let problem = readTable(record, now: now) {
                reports.watch.unreadable(
                    problem, of: record, topic: plan.tableTopics[record.topic], now: now,
                    logger: logger)
            }
        }
        if wasCaughtUp, tables.recordsRead > recordsBefore { waits.clock.readNewRecord() }
        if isIndexComplete(now: now) { perform(lifecycle.indexCompleted(), now: now) }
        return read == limit
    }

    /// - Returns: why the record was skipped, if it was.
    private mutating func readTable(
        _ record: borrowing KafkaRecord, now: Now
    ) -> UnreadableRecord? {
        let timestamp = WallTime(milliseconds: record.timestampMilliseconds)
        switch record.topic {
        case WorkerPlan.registrationsTable:
            return pipeline.registrationRecord(
                TableRecord(
                    key: record.key, value: record.value, timestamp: timestamp,
                    partition: record.partition, offset: record.offset), now: now)
        case WorkerPlan.suppressionsTable:
            return pipeline.suppressionRecord(
                key: record.key, value: record.value, timestamp: timestamp)
        case WorkerPlan.restrictionsTable:
            return pipeline.restrictionRecord(key: record.key, value: record.value)
        default:
            preconditionFailure(
                "a table's record is of registrations, suppressions or restrictions")
        }
    }

    /// Opens the consumer of events. The index must be complete before the first event is read.
    mutating func openConsumer() {
        precondition(consumer == nil, "the consumer is opened only while there is none")
        // The memory of prefetched table records is free now, and is returned to the system.
        Allocator.trim()
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
                "each stop resends the last events: set delivery.shutdownTimeout higher",
                metadata: [
                    "leastSeconds": .stringConvertible(WorkerPlan.shutdownLeast / .seconds(1))
                ])
        }
        do {
            let consumer = try EventConsumer(
                settings: plan.kafka, topics: plan.consumedTopics,
                replayed: plan.isShadow ? [] : [plan.deferredConsumed], startFrom: plan.startFrom,
                prefetchMax: Audience.prefetchMax, logger: logger)
            try epoll.add(consumer.wakeDescriptor, for: .read, tag: 4)
            readers.consumer = consumer
            beginShadow(now: Self.clock())
            control.enter(.running)
        } catch {
            lifecycle.clientFailed("the event topics cannot be read: \(error)")
        }
    }

    // MARK: Events

    mutating func readEvents(now: Now) -> Bool {
        guard let consumer else { return false }
        let room = IntakeRoom(events: pipeline.roomForEvents, isHalfFree: pipeline.isHalfFree)
        let poll = lifecycle.planPoll(room, now: now)
        perform(poll.actions, now: now)
        guard var limit = poll.limit else { return false }
        let readAgain = waits.held.isEmpty ? 0 : readHeld(limit: limit, now: now)
        // A poll for no record answers no rebalance.
        limit = max(1, limit - readAgain)
        var isFirst = true
        let read = consumer.poll(now: now, limit: limit) { topic, key in
            if topic != plan.deferredConsumed { pipeline.prefetch(key: key, binding: topic) }
        } _: { record in
            // The assignment of a record's partition may be a fact of the same poll, so facts come
            // first.
            if consumer.hasFacts { takeFacts(of: consumer, now: now) }
            if isFirst {
                isFirst = false
                reports.recordTimes.sampled(
                    record.timestampMilliseconds,
                    of: record.topic == plan.deferredConsumed ? .deferred : .events(record.topic),
                    now: now)
            }
            readEvent(record, now: now)
        }
        takeFacts(of: consumer, now: now)
        if read + readAgain > 0 { lifecycle.schedule.wasBusy(now) }
        return read == limit
    }

    private mutating func readEvent(_ record: borrowing KafkaRecord, now: Now) {
        guard let assignment = record.assignment else {
            preconditionFailure("a record that is delivered is of an assigned partition")
        }
        if record.topic == plan.deferredConsumed {
            return readDeferred(record, of: assignment, now: now)
        }
        assert(record.topic < plan.bindings.count, "each events topic has a binding")
        if plan.isSkipped(topic: record.topic, partition: record.partition, offset: record.offset),
            !waits.held.isHeld(assignment)
        {
            pipeline.skippedRecord(of: assignment, offset: record.offset, now: now)
            return
        }
        let event = EventRecord(
            binding: record.topic, key: record.key, value: record.value,
            timestamp: WallTime(milliseconds: record.timestampMilliseconds), offset: record.offset)
        if keepsUnread(record, event, of: assignment, now: now) { return }
        plan.recordInHand?.take(
            topic: record.topic, partition: record.partition, offset: record.offset)
        pipeline.eventRecord(event, of: assignment, now: now) { name in
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
        let problem = pipeline.deferredRecord(DeferredRecord(record), of: assignment, now: now)
        if let problem {
            reports.watch.unreadable(
                problem, of: record, topic: plan.deferredTopic, now: now, logger: logger)
        }
    }

    // MARK: Offsets

    mutating func commitOffsets(now: Now) {
        guard let consumer else { return lifecycle.schedule.committed(anything: false, now) }
        let open = consumer.commit(notedPositions(of: lifecycle.open.events, now: now), now: now)
        lifecycle.schedule.committed(anything: open > 0, now)
    }

    mutating func positions(of ids: [AssignmentID], now: Now) -> [CommitPosition] {
        ids.compactMap { id in
            pipeline.committableOffset(id, now: now).map { CommitPosition(id, offset: $0) }
        }
    }

    /// The positions with what the next owner should know.
    mutating func notedPositions(of ids: [AssignmentID], now: Now) -> [CommitPosition] {
        positions(of: ids, now: now).map { position in
            var position = position
            position.metadata = readers.cluster.flatMap {
                pipeline.commitNote(position.assignment, now: now)?.text(cluster: $0)
            }
            return position
        }
    }

    // MARK: Watching

    /// Publishes counters, writes the periodic reports, and checks the Kafka clients: a fatal error
    /// ends the worker, and a consumer with stalled partitions is restarted.
    mutating func watchOver(now: Now) {
        control.publish(
            WorkerControl.Snapshot(counters: pipeline.counters, load: pipeline.load))
        reports.flow.report(figures(now: now), now: now, logger: logger)
        reports.recordTimes.report(
            pipeline.takeExpiredEvents(), unread: consumer?.unread ?? 0, now: now, logger: logger
        ) { [plan] source in plan.topic(of: source) }
        tables.watch(now: now)
        reports.tables.report(tables.lags(now: now), topics: tables.topics, logger: logger)
        reports.watch.report(records.troubled(pipeline, plan, now: now), now: now, logger: logger)
        outcomes?.report(now: now, logger: logger)
        if let consumer {
            consumer.watchTransactions(now: now)
            consumer.watchPartitions(now: now)
            reports.watch.report(
                openTransactions: consumer.openTransactions(now: now), now: now, logger: logger)
        }
        reports.watch.report(remains: Client.remains, now: now, logger: logger)
        reports.watch.report(forgotten: pipeline.load.forgotten, now: now, logger: logger)
        reports.watch.report(pipeline.appsOutOfKinds, logger: logger)
        if reports.watch.mayReportFailures(now: now) {
            reports.watch.report(failures: pipeline.takeFailures(), now: now, logger: logger)
        }
        reports.unmatched.report(
            unmatched, passedOver: passedOver, now: now, logger: logger)
        reports.setAside.report(setAside, now: now, logger: logger)
        reports.misplaced.report(tables.misplaced, now: now, logger: logger)
        reports.held.report(heldPartitions(now: now), now: now, logger: logger)
        watchClock(now: now)
        for warning in tables.takeWarnings() + records.producer.takeWarnings()
            + (readers.rereader?.takeWarnings() ?? []) + (outcomes?.takeWarnings() ?? [])
        {
            logger.warning(
                "Kafka's client warns",
                metadata: ["code": "\(warning.code)", "text": "\(warning.text)"])
        }
        if let error = records.producer.fatalError {
            lifecycle.clientFailed("Kafka's producer has failed for good: \(error)")
        }
        if let error = tables.failure {
            lifecycle.clientFailed(
                "cannot read the topic of registrations, suppressions or restrictions: \(error)")
        }
        guard let consumer, lifecycle.isSteady else { return }
        let stalled = consumer.stalledPartitions(now: now)
        if !stalled.isEmpty {
            logger.error(
                "partitions deliver nothing: restarting the event consumer",
                metadata: ["partitions": .stringConvertible(stalled.count)])
            lifecycle.restartNeeded()
        }
    }

    private mutating func figures(now: Now) -> FlowReport.Figures {
        var figures = FlowReport.Figures(
            counters: pipeline.counters, load: pipeline.load(now: now), lag: consumer?.lag,
            unavailablePartitions: consumer?.unavailableCount ?? 0)
        for accepted in pipeline.pushTally.acceptanceTimes {
            figures.eventToAccepted.add(accepted.times)
        }
        return figures
    }
}
