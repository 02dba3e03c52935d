// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import SchemaRegistry

/// Passes facts to `WorkerLifecycle` and performs the actions that it returns.
extension PlannerLoop {
    /// Advances the worker's lifecycle, as the last step of a turn.
    mutating func advanceLifecycle(now: Now) {
        if control.isStopRequested {
            snapshots?.stopBegan(at: now.monotonic)
            perform(lifecycle.stopRequested(patience: plan.stopPatience, now: now), now: now)
        }
        let facts = lifecycle.isDraining ? drainFacts(now: now) : nil
        perform(lifecycle.advance(facts, now: now), now: now)
        if let consumer { takeFacts(of: consumer, now: now) }
    }

    private mutating func drainFacts(now: Now) -> DrainFacts {
        var states: [AssignmentID: DrainState] = [:]
        for id in lifecycle.draining { states[id] = drainState(of: id) }
        return DrainFacts(
            load: pipeline.load, counters: pipeline.counters, states: states,
            hasDeliveryEnded: delivery.hasEnded)
    }

    private func drainState(of id: AssignmentID) -> DrainState {
        pipeline.isDrained(id) ? .drained : .open
    }

    // MARK: Actions

    mutating func perform(_ actions: [LifecycleAction], now: Now) {
        for action in actions { perform(action, now: now) }
    }

    private mutating func perform(_ action: LifecycleAction, now: Now) {
        switch action {
        case .openConsumer: openConsumer()
        case .pause(let topics):
            consumer?.pauseAll(now: now) { topics.include($0, deferred: plan.deferredConsumed) }
        case .resume(let topics):
            consumer?.resumeAll(now: now) { topics.include($0, deferred: plan.deferredConsumed) }
        case .markReplayed(let id): pipeline.deferredReplayed(id, now: now)
        case .completeRevoke(let ids):
            consumer?.completeRevoke(
                commit: notedPositions(of: ids, now: now), isLeaving: lifecycle.isStopping, now: now
            )
        case .unassign(let ids): unassign(ids)
        case .restartConsumer(let ids): restartConsumer(committing: ids, now: now)
        case .announceStop:
            StopWatch.note("writing to the log")
            logger.notice("stopping")
            StopWatch.note("sending what is under way")
            control.enter(.draining)
        case .drainDelivery: delivery.enter(.draining)
        case .stopDelivery: delivery.enter(.stopping)
        }
    }

    private mutating func restartConsumer(committing ids: [AssignmentID], now: Now) {
        guard let consumer else { return }
        do {
            try consumer.restart(
                committing: notedPositions(of: ids, now: now), timeout: .seconds(5), now: now)
        } catch {
            lifecycle.clientFailed("Kafka's consumer cannot be reopened: \(error)")
        }
    }

    // MARK: Facts of the consumer

    mutating func takeFacts(of consumer: EventConsumer, now: Now) {
        for fact in consumer.takeFacts() { take(fact, now: now) }
    }

    mutating func take(_ fact: ConsumerFact, now: Now) {
        switch fact {
        case .assigned(let assignments): assigned(assignments, now: now)
        case .revoking(let ids): lifecycle.revoking(ids, now: now)
        case .lost(let ids): perform(lifecycle.lost(ids), now: now)
        case .endOfPartition(let id):
            waits.clock.reachedEnd(id)
            perform(lifecycle.endReached(id), now: now)
        case .offsetsLost(let loss): reports.watch.lost(loss, plan: plan, logger: logger)
        case .unavailable(let partitions):
            reports.watch.unavailable(partitions, topics: plan.consumedTopics, logger: logger)
        case .availableAgain(let topic, let partition):
            logger.notice(
                "a partition is read again",
                metadata: ["partition": "\(plan.consumedTopics[topic])/\(partition)"])
        case .notCommitted(let refusal):
            reports.watch.notCommitted(refusal, topics: plan.consumedTopics, logger: logger)
        case .warning(let warning):
            logger.warning(
                "Kafka's client warns",
                metadata: [
                    "code": "\(warning.code)", "text": "\(warning.text)",
                    "suppressed": .stringConvertible(warning.suppressed),
                ])
        case .restartNeeded(let error):
            logger.warning("restarting the event consumer", metadata: ["cause": "\(error)"])
            lifecycle.restartNeeded()
        case .fatal(let error) where error.code == .fencedInstanceID:
            fenced(error, now: now)
        case .fatal(let error):
            lifecycle.clientFailed("Kafka's consumer has failed for good: \(error)")
        }
    }

    private mutating func fenced(_ error: RdkafkaError, now: Now) {
        let name = plan.kafka.properties["group.instance.id"]?.text ?? ""
        let isOpenedAgain = lifecycle.fenced(
            now: now,
            reason:
                "another running worker has the same kafka.groupInstanceID, '\(name)': stop one of "
                + "them, or give each a name of its own. This worker was fenced \(ConsumerRestarts.fencingsMax) times within "
                + "\(ConsumerRestarts.fencingWindow.components.seconds) s")
        guard isOpenedAgain else { return }
        logger.warning(
            "the group has fenced this worker's kafka.groupInstanceID; rejoining the group",
            metadata: ["groupInstanceID": "\(name)", "cause": "\(error)"])
    }

    private mutating func assigned(_ assignments: [Assignment], now: Now) {
        var events: [AssignmentID] = []
        var deferred: [AssignmentID] = []
        for assignment in assignments {
            if assignment.topic == plan.deferredConsumed {
                pipeline.deferredAssigned(assignment.id, partition: assignment.partition)
                deferred.append(assignment.id)
            } else {
                let note = Self.note(of: assignment, cluster: readers.cluster)
                if let note { consumer?.hasEnded(assignment.id, below: note.endedOffset) }
                pipeline.assigned(
                    assignment.id, topic: UInt16(assignment.topic), partition: assignment.partition,
                    startOffset: assignment.startOffset, note: note)
                events.append(assignment.id)
                holds.assigned(assignment.id, topic: assignment.topic)
            }
        }
        readers.counting.begin(plan, waker: control.waker, logger: logger, now: now)
        partitionsChanged(now: now)
        perform(lifecycle.assigned(events: events, deferred: deferred), now: now)
        AssignmentReport.tell(
            assignments, topics: plan.consumedTopics, startFrom: plan.startFrom, logger: logger)
    }

    /// What the owner before has left beside the committed offset. A note that is ahead of the log
    /// is about records that the log has lost, and that others may have replaced.
    static func note(of assignment: Assignment, cluster: String?) -> CommitNote? {
        guard let text = assignment.metadata, let cluster,
            let note = CommitNote(text, cluster: cluster), note.end <= assignment.logEnd
        else { return nil }
        return note
    }

    private mutating func unassign(_ ids: [AssignmentID]) {
        assert(
            !ids.contains(where: lifecycle.open.contains),
            "a partition that is given up is not open any more")
        pipeline.unassigned(ids)
        for id in ids {
            waits.held.forget(id)
            waits.clock.forget(id)
            holds.unassigned(id)
        }
        partitionsChanged(now: Self.clock())
        logger.info("unassigned", metadata: ["partitions": .stringConvertible(ids.count)])
    }

    // MARK: The end

    /// Takes the closing steps: stops delivery, flushes records, commits the last offsets and leaves
    /// the group.
    mutating func close(_ end: WorkerEnd) -> WorkerEnd {
        let now = Self.clock()
        // A worker that ends because a client has failed was not asked to stop.
        StopWatch.limit(WorkerPlan.stopLimit(plan.live.shutdownTimeout))
        waits.schemas?.stop()
        for step in ClosingStep.allCases { take(step, of: end, now: now) }
        control.publish(
            WorkerControl.Snapshot(counters: pipeline.counters, load: pipeline.load))
        StopWatch.note("writing to the log")
        reports.flow.reportTotals(pipeline.counters, logger: logger)
        control.enter(.stopped)
        StopWatch.note("closing the listeners")
        return end
    }

    private mutating func take(_ step: ClosingStep, of end: WorkerEnd, now: Now) {
        switch step {
        case .stopDelivery: delivery.enter(.stopping)
        case .flushRecords:
            StopWatch.note("writing the last records to Kafka")
            if !records.producer.flush(timeout: WorkerPlan.flushTimeout) {
                logger.warning(
                    "Kafka has not acknowledged all records; their events will be read again")
            }
        case .takeAcknowledgements:
            if shadow != nil { _ = takeShadowRecords(now: now) }
            _ = records.collectAcknowledgements(&pipeline, now: now)
        case .leaveGroup:
            StopWatch.note("leaving the group")
            guard let consumer else { return }
            let positions = notedPositions(of: lifecycle.open.events, now: now)
            if !consumer.close(committing: positions, timeout: WorkerPlan.leaveTimeout, now: now) {
                logger.warning("could not leave the group in time; it will expel this worker later")
            }
            for case .notCommitted(let refusal) in consumer.takeFacts() {
                reports.watch.notCommitted(refusal, topics: plan.consumedTopics, logger: logger)
            }
        case .flushOutcomes:
            guard outcomes != nil else { return }
            StopWatch.note("writing the last outcomes of pushes to Kafka")
            closeOutcomes(now: now)
        case .keepIndex: keepIndex(end, now: Self.clock())
        }
    }
}

extension PausedTopics {
    /// Whether the topic is among those to pause or resume.
    ///
    /// - Parameter deferred: the position of the topic `deferred`.
    fileprivate func include(_ topic: Int, deferred: Int) -> Bool {
        switch self {
        case .events: topic != deferred
        case .all: true
        }
    }
}
