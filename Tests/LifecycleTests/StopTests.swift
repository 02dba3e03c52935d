// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `A stop` {
    private let life = LifecycleFixture()

    init() { _ = life.assign([life.first, life.second], deferred: [life.rows]) }

    @Test func `a stop pauses everything, and is announced once`() {
        #expect(life.stop() == [.announceStop, .pause(.all)])
        #expect(life.lifecycle.isStopping)
        life.pass(5000)
        #expect(life.stop() == [])
        #expect(life.lifecycle.drain == .until(at(2250).monotonic), "the first request counts")
    }

    @Test func `a stop reads no events, and goes on polling for the group's sake`() {
        _ = life.stop()
        life.room.events = 0
        #expect(life.poll() == PollPlan(limit: TurnBudget.events))
        life.pass(2000)
        life.empty()
        #expect(life.poll() == PollPlan(limit: TurnBudget.events), "and resumes nothing")
    }

    @Test func `a stop pauses what is assigned to it on the way`() {
        _ = life.stop()
        let third = AssignmentID(ordinal: 7, epoch: 9)
        #expect(life.assign([third]) == [.pause(.all)])
    }

    @Test func `a stop has delivery end when all has ended, and is complete when that is gone`() {
        _ = life.stop()
        life.load.inFlight = 2
        #expect(life.advance() == [] && life.lifecycle.mayHandOver)
        life.load.inFlight = 0
        #expect(life.advance() == [.drainDelivery] && !life.lifecycle.mayHandOver)
        #expect(life.lifecycle.drain == .ending)
        #expect(life.advance() == [] && life.lifecycle.end == nil)
        life.hasDeliveryEnded = true
        #expect(life.advance() == [] && life.lifecycle.end == .stopped)
    }

    @Test func `a stop waits for the acknowledgements of its records`() {
        _ = life.stop()
        life.load.unacknowledged = 1
        #expect(life.advance() == [])
        life.pass(2999)
        #expect(life.advance() == [])
        life.load.unacknowledged = 0
        #expect(life.advance() == [.drainDelivery])
        // A last outcome has caused a record.
        life.load.unacknowledged = 1
        life.hasDeliveryEnded = true
        #expect(life.advance() == [] && life.lifecycle.end == nil)
        life.load.unacknowledged = 0
        #expect(life.advance() == [] && life.lifecycle.end == .stopped)
    }

    @Test func `a stop gives back what is in flight when nothing ends any more`() {
        _ = life.stop()
        life.load.inFlight = 1
        #expect(life.advance() == [])
        life.pass(3000)
        #expect(life.advance() == [.stopDelivery])
    }

    @Test func `a stop is over at its deadline, whatever is left, but for what delivery has said`()
    {
        _ = life.stop(patience: .seconds(5))
        life.load.inFlight = 9
        for _ in 0..<4 {
            life.load.inFlight -= 1
            life.pass(1249)
            #expect(life.advance() == [])
        }
        life.pass(4)
        #expect(life.advance() == [.stopDelivery] && life.lifecycle.end == nil)
        #expect(life.advance() == [], "delivery is asked once")
        life.load.inFlight = 1
        life.hasDeliveryEnded = true
        #expect(life.advance() == [] && life.lifecycle.end == .stopped)
    }

    @Test func `a stop stops a delivery that was only to drain when the deadline is reached`() {
        _ = life.stop(patience: .seconds(5))
        #expect(life.advance() == [.drainDelivery])
        life.pass(5000)
        #expect(life.advance() == [.stopDelivery] && life.lifecycle.end == nil)
    }

    @Test func `a stop without patience is over at once`() {
        _ = life.stop(patience: .zero)
        #expect(life.lifecycle.drain == .until(at(0).monotonic))
        life.load.inFlight = 3
        life.hasDeliveryEnded = true
        #expect(life.advance() == [.stopDelivery] && life.lifecycle.end == .stopped)
    }

    @Test func `a stop leaves in deferred what rests beyond a drain, though it may last longer`() {
        _ = life.stop()
        #expect(life.lifecycle.drain == .until(at(2250).monotonic))
    }

    @Test func `a stop before the index is complete opens no consumer, and ends at once`() {
        var lifecycle = WorkerLifecycle(drainMax: LifecycleFixture.drainMax, now: at(0))
        _ = lifecycle.stopRequested(patience: .seconds(5), now: at(0))
        let actions = lifecycle.indexCompleted()
        #expect(actions == [])
        life.lifecycle = lifecycle
        #expect(life.advance() == [.drainDelivery])
        life.hasDeliveryEnded = true
        #expect(life.advance() == [] && life.lifecycle.end == .stopped)
    }

    // MARK: Beside a revoke or a restart

    @Test func `a stop answers a revoke on the way, and stores what has ended`() {
        _ = life.stop()
        life.load.inFlight = 1
        life.revoke([life.first])
        #expect(life.lifecycle.draining == [life.first])
        #expect(
            life.advance() == [.completeRevoke(committing: [life.first]), .unassign([life.first])])
        #expect(life.lifecycle.isDraining && life.lifecycle.draining == [])
    }

    @Test func `a stop answers a revoke by its deadline though it may itself last longer`() {
        _ = life.stop()
        life.pass(1000)
        life.revoke([life.first])
        #expect(life.lifecycle.drain == .until(at(2250).monotonic), "the earlier end counts")
        life.states[life.first] = .open
        life.load.inFlight = 1
        life.pass(2250)
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
    }

    @Test func `a stop ends a revoke of its own partitions in the same turn as itself`() {
        _ = life.stop()
        life.revoke([life.first, life.second, life.rows])
        #expect(
            life.advance() == [
                .completeRevoke(committing: [life.first, life.second]),
                .unassign([life.first, life.second, life.rows]), .drainDelivery,
            ])
    }

    @Test func `a stop restarts no consumer`() {
        life.lifecycle.restartNeeded()
        _ = life.stop()
        life.load.inFlight = 1
        #expect(life.advance() == [])
    }

    @Test func `a stop loses partitions without waiting for them`() {
        _ = life.stop()
        _ = life.lose([life.first, life.second, life.rows])
        #expect(life.advance() == [.drainDelivery])
    }
}
