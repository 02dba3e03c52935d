// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

extension PlannerLoop {
    /// An orderly stop: no more events are read; what is queued and in flight may end; what rests is
    /// read again by the next owner, since its offset is not stored.
    mutating func advanceStop(now: Now) {
        if stop == nil {
            guard control.isStopRequested else { return }
            logger.notice("stopping")
            control.enter(.draining)
            pipeline.isStopping = true
            consumer?.pauseAll(now: now)
            let patience = plan.shutdownTimeout - Self.closingReserve
            stop = StopDrain(deadline: now.monotonic + max(.zero, patience))
        }
        pipeline.flushDeadLetters(now: now, all: true)
        let isOver = stop!.deadline <= now.monotonic
        if !stop!.hasAskedDelivery, isOver || isDrained(now: now) {
            stop!.hasAskedDelivery = true
            for port in ports { port.enter(isOver ? .stopping : .draining) }
        }
        guard stop!.hasAskedDelivery else { return }
        if isOver { for port in ports { port.enter(.stopping) } }
        let isDelivered = ports.allSatisfy { $0.hasExited && !$0.hasOutcomes }
        if isDelivered, isOver || pipeline.load.unacknowledged == 0 { end = end ?? .stopped }
    }

    /// Nothing is under way, and every partition's events have settled.
    private mutating func isDrained(now: Now) -> Bool {
        let load = pipeline.load
        guard load.queued == 0, load.inFlight == 0, load.fanOuts == 0, load.unacknowledged == 0
        else { return false }
        return partitions.open.allSatisfy { id in
            partitions.track(of: id).map { pipeline.isSettled($0, now: now) } ?? true
        }
    }

    /// Of the time to stop, what closing the connections and leaving the group may take.
    private static var closingReserve: Duration { .seconds(5) }

    /// Leaves the group with everything stored that has ended.
    mutating func finish(_ end: WorkerEnd) -> WorkerEnd {
        let now = Self.clock()
        for port in ports { port.enter(.stopping) }
        if !producer.flush(timeout: .seconds(2)) {
            logger.warning("records are still on their way to Kafka; their events are read again")
        }
        _ = collectAcknowledgements(now: now)
        if let consumer {
            let stored = positions(of: partitions.open, now: now)
            if !consumer.close(storing: stored, timeout: .seconds(3), now: now) {
                logger.warning("the group could not be left in time; it will notice by itself")
            }
        }
        control.publish(
            WorkerControl.Snapshot(counters: pipeline.counters, load: pipeline.load))
        control.enter(.stopped)
        return end
    }
}
