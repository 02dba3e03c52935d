// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Lifecycle

/// Partitions that the group wants back, while it waits for them.
@Suite struct `A revoke` {
    private let life = LifecycleFixture()

    init() { _ = life.assign([life.first, life.second], deferred: [life.rows]) }

    @Test
    func `a revoke is complete when all that was read has ended, and its partitions are given up`()
    {
        life.revoke([life.first, life.rows])
        life.states[life.first] = .open
        life.load.inFlight = 1
        #expect(life.advance() == [])
        life.pass(100)
        life.states[life.first] = .drained
        #expect(
            life.advance() == [
                .completeRevoke(committing: [life.first]), .unassign([life.first, life.rows]),
            ])
        #expect(life.lifecycle.open.events == [life.second] && life.lifecycle.open.deferred == [])
        #expect(life.advance() == [] && !life.lifecycle.isDraining)
    }

    @Test func `a revoke asks about the partitions that are wanted back, and no others`() {
        #expect(life.lifecycle.draining == [])
        life.revoke([life.second, life.rows])
        #expect(life.lifecycle.draining == [life.second, life.rows])
    }

    @Test func `a revoke does not wait for partitions that stay`() {
        life.revoke([life.first])
        life.states[life.second] = .open
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
    }

    @Test func `a revoke is complete at its deadline, whatever is left`() {
        life.revoke([life.first])
        life.states[life.first] = .open
        life.load.inFlight = 5
        life.pass(2249)
        #expect(life.advance() == [])
        life.pass(1)
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
    }

    @Test func `a revoke is complete when nothing ends any more`() {
        let life = LifecycleFixture(drainMax: .seconds(60))
        _ = life.assign([life.first])
        life.revoke([life.first])
        life.states[life.first] = .open
        life.load.inFlight = 1
        #expect(life.advance() == [])
        life.pass(3000)
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
    }

    @Test func `a revoke of deferred pushes does not wait for those of others`() {
        life.revoke([life.rows])
        life.load.inFlight = 1
        #expect(life.advance() == [.completeRevoke(committing: []), .unassign([life.rows])])
    }

    @Test func `a revoke waits for what deferred pushes have announced, to its deadline at most`() {
        life.revoke([life.first, life.rows])
        life.states[life.rows] = .open
        life.load.unacknowledged = 1
        #expect(life.advance() == [])
        life.pass(2249)
        #expect(life.advance() == [])
        life.pass(1)
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
    }

    @Test func `a revoke bounds how long a push may wait, and has letters written`() {
        #expect(life.lifecycle.drain == nil && !life.lifecycle.isDraining)
        life.revoke([life.first])
        #expect(life.lifecycle.drain == .until(at(2250).monotonic))
        #expect(life.lifecycle.isDraining && life.lifecycle.mayHandOver)
    }

    @Test func `a revoke is looked after every ten milliseconds, and at its deadline`() {
        life.revoke([life.first])
        #expect(life.lifecycle.nextDue(now: at(0)) == at(10).monotonic)
        life.lifecycle.schedule.committed(anything: false, at(2240))
        #expect(life.lifecycle.nextDue(now: at(2245)) == at(2250).monotonic)
    }

    @Test func `a revoke ends with the loss of its partitions, which are given up once`() {
        life.revoke([life.first, life.rows])
        life.states[life.first] = .open
        #expect(
            life.lose([life.first, life.second, life.rows]) == [
                .unassign([life.first, life.second, life.rows])
            ])
        #expect(!life.lifecycle.isDraining && life.advance() == [])
        #expect(life.lose([life.first]) == [])
    }

    @Test func `a revoke goes on for what is left when a part of it is lost`() {
        life.revoke([life.first, life.second])
        life.states[life.second] = .open
        life.load.inFlight = 1
        #expect(life.lose([life.first]) == [.unassign([life.first])])
        #expect(life.lifecycle.draining == [life.second] && life.advance() == [])
        life.states[life.second] = .drained
        #expect(
            life.advance() == [
                .completeRevoke(committing: [life.second]), .unassign([life.second]),
            ])
    }

    @Test func `a loss of other partitions leaves a revoke as it was`() {
        life.revoke([life.first])
        #expect(life.lose([life.second]) == [.unassign([life.second])])
        #expect(life.lifecycle.draining == [life.first])
    }

    @Test func `the same partition comes back as another assignment`() {
        life.revoke([life.first])
        _ = life.advance()
        let again = AssignmentID(ordinal: life.first.ordinal, epoch: 9)
        _ = life.assign([again])
        #expect(life.lose([life.first]) == [])
        #expect(life.lifecycle.open.events == [life.second, again])
    }
}
