// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Lifecycle

/// Clients that fail, and consumers that are opened again.
@Suite struct `A worker's clients` {
    private let life = LifecycleFixture()

    init() { _ = life.assign([life.first], deferred: [life.rows]) }

    @Test func `the consumer is opened once, when the index is complete`() {
        var lifecycle = WorkerLifecycle(drainMax: LifecycleFixture.drainMax, now: at(0))
        let wasSteady = lifecycle.isSteady
        let actions = [lifecycle.indexCompleted(), lifecycle.indexCompleted()]
        #expect(actions == [[.openConsumer], []])
        #expect(!wasSteady && lifecycle.isSteady)
    }

    @Test func `a client that has failed ends the worker, for the first reason`() {
        life.lifecycle.clientFailed("the producer")
        life.lifecycle.clientFailed("the consumer")
        #expect(life.lifecycle.end == .clientFailed("the producer"))
    }

    @Test func `a client that fails while the worker stops ends it at once`() {
        _ = life.stop()
        life.load.inFlight = 1
        life.lifecycle.clientFailed("the producer")
        #expect(life.advance() == [])
        #expect(life.lifecycle.end == .clientFailed("the producer"))
    }

    @Test func `the consumer that asks for it is opened again with what has ended stored`() {
        #expect(life.advance() == [])
        life.lifecycle.restartNeeded()
        #expect(life.advance() == [.restartConsumer(committing: [life.first])])
        #expect(life.advance() == [])
    }

    @Test func `a restart that helps nothing is made again after half a minute`() {
        life.lifecycle.restartNeeded()
        _ = life.advance()
        life.lifecycle.restartNeeded()
        life.pass(29_999)
        #expect(life.advance() == [])
        life.pass(1)
        #expect(life.advance() == [.restartConsumer(committing: [life.first])])
    }

    @Test func `a restart that is asked for during a revoke waits for its end`() {
        life.revoke([life.first])
        life.states[life.first] = .open
        life.load.inFlight = 1
        life.lifecycle.restartNeeded()
        #expect(life.advance() == [])
        life.states[life.first] = .drained
        #expect(life.advance().first == .completeRevoke(committing: [life.first]))
        #expect(life.advance() == [.restartConsumer(committing: [])])
    }

    @Test func `what a restart has lost is given up, and comes back unpaused`() {
        life.fill()
        life.lifecycle.restartNeeded()
        _ = life.advance()
        #expect(
            life.lose([life.first, life.rows]) == [.unassign([life.first, life.rows])])
        let again = AssignmentID(ordinal: 0, epoch: 8)
        #expect(life.assign([again]) == [])
    }

    @Test func `a name that was given away is taken back after a while, twice`() {
        for wait in [2000, 4000] as [Int64] {
            let isOpenedAgain = life.fence()
            #expect(isOpenedAgain && life.advance() == [])
            life.pass(wait - 1)
            #expect(life.advance() == [])
            life.pass(1)
            #expect(life.advance() == [.restartConsumer(committing: [life.first])])
        }
        #expect(!life.fence())
        #expect(life.lifecycle.end == .nameTaken("fenced"))
    }

    @Test func `a worker that has ended does nothing more`() {
        life.lifecycle.restartNeeded()
        life.lifecycle.clientFailed("the tables")
        #expect(life.advance() == [])
    }

    @Test func `the worker is steady, so that silence is a fault, while nothing is given up`() {
        #expect(life.lifecycle.isSteady)
        life.revoke([life.first])
        #expect(!life.lifecycle.isSteady)
        _ = life.advance()
        #expect(life.lifecycle.isSteady)
        _ = life.stop()
        #expect(!life.lifecycle.isSteady)
    }

    // MARK: Order

    @Test func `a turn makes room before it fills it, and stores what it has ended`() {
        #expect(
            TurnStep.order == [
                .outcomes, .acknowledgements, .tables, .events, .timers, .fanOuts, .handOver,
                .records, .offsets, .watch, .lifecycle,
            ])
    }

    @Test func `the last acknowledgements release offsets before they are stored`() {
        #expect(
            ClosingStep.allCases == [
                .stopDelivery, .flushRecords, .takeAcknowledgements, .leaveGroup, .flushOutcomes,
                .keepIndex,
            ])
    }
}
