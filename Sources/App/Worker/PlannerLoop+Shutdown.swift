// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

extension PlannerLoop {
    /// An orderly stop: no more events are read; what can end may end, what waits for longer is
    /// deferred, and the rest is read again by the next owner, since its offset is not stored.
    mutating func advanceStop(now: Now) {
        if stop == nil {
            guard control.isStopRequested else { return }
            beginStop(now: now)
        }
        pipeline.flushDeadLetters(now: now, all: true)
        let isOver = stop!.deadline <= now.monotonic
        let isUseless = stop!.watch.isOver(pipeline.load, pipeline.counters, now: now)
        if !stop!.hasAskedDelivery, isOver || isUseless && isPastGrace(now: now) {
            stop!.hasAskedDelivery = true
            let isComplete = pipeline.load.inFlight == 0
            for port in ports { port.enter(isComplete ? .draining : .stopping) }
        }
        guard stop!.hasAskedDelivery else { return }
        if isOver { for port in ports { port.enter(.stopping) } }
        let isDelivered = ports.allSatisfy { $0.hasExited && !$0.hasOutcomes }
        if isDelivered, isOver || isUseless { end = end ?? .stopped }
    }

    private mutating func beginStop(now: Now) {
        logger.notice("stopping")
        control.enter(.draining)
        consumer?.pauseAll(now: now)
        stop = StopDrain(
            graceEndsAt: now.monotonic + min(plan.stopPatience, plan.pipeline.drainMax),
            deadline: now.monotonic + plan.stopPatience)
    }

    /// Whether the grace period of every event is over: whoever registers now is owed none of them.
    private mutating func isPastGrace(now: Now) -> Bool {
        pipeline.eventAssignments.allSatisfy { pipeline.isPastGrace($0, now: now) }
    }

    /// Leaves the group with everything stored that has ended.
    mutating func finish(_ end: WorkerEnd) -> WorkerEnd {
        let now = Self.clock()
        for port in ports { port.enter(.stopping) }
        if !producer.flush(timeout: .seconds(2)) {
            logger.warning("records are still on their way to Kafka; their events are read again")
        }
        _ = collectAcknowledgements(now: now)
        if let consumer {
            let stored = positions(of: pipeline.eventAssignments, now: now)
            if !consumer.close(storing: stored, timeout: .seconds(3), now: now) {
                logger.warning("the group could not be left in time; it will notice by itself")
            }
        }
        control.publish(
            WorkerControl.Snapshot(counters: pipeline.counters, load: pipeline.load))
        flow.reportTotals(pipeline.counters, logger: logger)
        control.enter(.stopped)
        return end
    }
}
