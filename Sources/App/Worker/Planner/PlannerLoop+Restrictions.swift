// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import Logging
internal import Pipeline
internal import PushModel

/// Follows what operators pause, drop and limit: leaves the events of paused topics in Kafka, tells
/// the pipeline its share of limits, and logs every change.
extension PlannerLoop {
    /// Looks whether anything has changed; called once a turn.
    mutating func followRestrictions(now: Now) {
        if let counts = readers.counting.advance(
            plan, waker: control.waker, logger: logger, now: now)
        {
            assert(
                counts.produced.count == plan.producedTopics.count,
                "there is a count of partitions for each topic that is written to")
            plan.consumedPartitions = counts.consumed
            plan.producedPartitions = counts.produced
            sharePartitions()
            partitionsChanged(now: now)
        }
        guard consumer != nil, pipeline.restrictions.changes != reports.restrictions.changes
        else { return }
        reports.restrictions.changes = pipeline.restrictions.changes
        reports.restrictions.tell(pipeline.restrictions.inForce, logger: logger)
        holds.pausedTopics(pipeline.restrictions.pausedTopics)
        applyHolds(now: now)
    }

    /// Whether events may be read: each table was read to its end, but for the restrictions where
    /// they alone cannot be read for a while.
    mutating func isIndexComplete(now: Now) -> Bool {
        let wasGivenUp = lifecycle.restrictionsWait.isGivenUp
        let mayBegin = lifecycle.restrictionsWait.mayBegin(
            hasOthers: tables.isCaughtUp
                || tables.isCaughtUp(topic: WorkerPlan.registrationsTable)
                    && tables.isCaughtUp(topic: WorkerPlan.suppressionsTable),
            hasRestrictions: tables.isCaughtUp
                || tables.isCaughtUp(topic: WorkerPlan.restrictionsTable), now: now.monotonic)
        if snapshotIsWrong(isComplete: mayBegin, now: now) { return false }
        guard wasGivenUp != lifecycle.restrictionsWait.isGivenUp else { return mayBegin }
        if wasGivenUp {
            logger.notice("the restrictions are read, and in force")
        } else {
            logger.warning(
                """
                starting without the restrictions, since their topic cannot be read: what operators \
                have paused, dropped or limited is sent until it can. Restore the leaders of its \
                partitions, or the right to read it
                """,
                metadata: [
                    "topic": "\(plan.tableTopics[WorkerPlan.restrictionsTable])",
                    "waitedSeconds": .stringConvertible(RestrictionsWait.most.components.seconds),
                ])
        }
        return mayBegin
    }

    /// Gives each partition that is written to its share.
    mutating func sharePartitions() {
        records.adopt(plan)
        pipeline.adopt(deferredPartitions: plan.partitions(of: .deferred))
    }

    /// Partitions were assigned or given up.
    mutating func partitionsChanged(now: Now) {
        let share = consumer.flatMap { consumer in
            plan.consumedPartitions.map {
                Double(consumer.assignedPartitions.count) / Double(max(1, $0))
            }
        }
        pipeline.adopt(shareOfLimits: min(1, share ?? 1))
        applyHolds(now: now)
    }
}

/// What operators and the configuration had restricted when the planner last looked.
struct SeenRestrictions {
    var changes = 0
    private var told: [Restriction.Scope: Restriction] = [:]

    /// Logs what differs from what was told last.
    mutating func tell(_ inForce: [Restriction.Scope: Restriction], logger: Logger) {
        for (scope, restriction) in inForce where told[scope] != restriction {
            let end =
                restriction.isConfigured ? "taken out of \(ConfiguredRestriction.by)" : "resumed"
            logger.notice(
                restriction.isConfigured
                    ? "restricted by the configuration" : "restricted by an operator",
                metadata: [
                    "what": "\(scope)", "action": "\(restriction.action)",
                    "by": "\(restriction.by)", "reason": "\(restriction.reason ?? "")",
                    "at": "\(restriction.at.rfc3339)",
                    "until": "\(restriction.until?.rfc3339 ?? end)",
                ])
        }
        for (scope, restriction) in told where inForce[scope] == nil {
            logger.notice(
                "no longer restricted",
                metadata: ["what": "\(scope)", "action": "\(restriction.action)"])
        }
        told = inForce
    }
}
