// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import KafkaLog
internal import Lifecycle
internal import Logging
internal import Pipeline
internal import PushModel

/// Keeps a wrong clock from ending what is owed.
extension PlannerLoop {
    /// Whether an event's record must wait, since this worker's clock is far ahead of Kafka's.
    mutating func clockHolds(_ writtenAt: WallTime, of id: AssignmentID, now: Now) -> Bool {
        guard writtenAt.milliseconds > 0 else { return false }
        let age = now.wall - writtenAt
        let isOld = age > ClockHold.leadMax
        let holds = waits.clock.holds(
            id, age: age, lead: isOld ? pipeline.clockLead(now: now) : nil,
            life: isOld ? plan.longestLife : .zero)
        if holds { pipeline.sawRecord(writtenAt: writtenAt, now: now) }
        return holds
    }

    func clockDoubt(now: Now) -> ClockDoubt {
        ClockDoubt(
            deferred: pipeline.load.heldBack,
            partitions: waits.held.partitions.values.count { $0.awaited == .clock },
            lead: pipeline.clockLead(now: now) ?? .zero)
    }

    /// Tells what waits for the clock, and reads `deferred` again once somebody has set it back: its
    /// rows were converted with the wrong time.
    mutating func watchClock(now: Now) {
        reports.clock.report(clockDoubt(now: now), logger: logger)
        guard lifecycle.isSteady, pipeline.isClockSetBack(now: now) else { return }
        logger.notice("this worker's clock was set back: restarting the event consumer")
        lifecycle.restartNeeded()
    }
}

extension WorkerPlan {
    /// For how long an event without a time of its own is worth a push at most.
    var longestLife: Duration {
        let events = pipeline.events
        return bindings.reduce(max(events.changeTTL, events.payloadTTL)) { longest, binding in
            max(longest, binding.ttl ?? .zero)
        }
    }
}

/// Logs once that a clock which may be ahead keeps something from ending, and once that this is over.
struct ClockReport {
    private var isTold = false

    mutating func report(_ doubt: ClockDoubt, logger: Logger) {
        guard doubt.isNothing == isTold else { return }
        isTold = !doubt.isNothing
        guard isTold else {
            logger.notice("nothing waits for this worker's clock any more")
            return
        }
        logger.warning(
            """
            this worker's clock is ahead of every record that it has read: what has expired by this \
            clock alone waits, and is neither sent nor ended. Compare the clock with the brokers'
            """,
            metadata: [
                "aheadSeconds": .stringConvertible(doubt.lead.components.seconds),
                "deferred": .stringConvertible(doubt.deferred),
                "partitions": .stringConvertible(doubt.partitions),
            ])
    }
}
