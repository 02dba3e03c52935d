// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

/// Back-pressure: which partitions are paused, and how far the consumer is polled.
@Suite struct `The intake of events` {
    private let life = LifecycleFixture()

    init() { _ = life.assign([life.first], deferred: [life.rows]) }

    @Test func `the intake reads as many events as there is room for, and a turn's share at most`()
    {
        #expect(life.poll() == PollPlan(limit: TurnBudget.events))
        life.room.events = 7
        #expect(life.poll() == PollPlan(limit: 7))
    }

    @Test func `the intake without room stops polling, then pauses the events and polls again`() {
        life.room.events = 0
        life.room.isHalfFree = false
        #expect(life.poll() == PollPlan(limit: nil))
        life.pass(999)
        #expect(life.poll() == PollPlan(limit: nil))
        life.pass(1)
        #expect(life.poll() == PollPlan(actions: [.pause(.events)], limit: TurnBudget.events))
        #expect(life.poll() == PollPlan(limit: TurnBudget.events))
        life.empty()
        #expect(life.poll() == PollPlan(actions: [.resume(.events)], limit: TurnBudget.events))
    }

    @Test func `the intake pauses what is assigned while the events are paused`() {
        life.fill()
        #expect(life.assign([life.second]) == [.pause(.events)])
        #expect(life.assign([], deferred: [life.moreRows]) == [.pause(.events)])
    }

    @Test func `the intake pauses nothing of a new assignment when all that was paused is gone`() {
        life.fill()
        _ = life.lose([life.first, life.rows])
        #expect(life.assign([life.second]) == [])
        life.room.events = 7
        #expect(life.poll() == PollPlan(limit: 7), "one event has room, though not half is free")
    }

    @Test func `the intake pauses no events though deferred pushes stay`() {
        life.fill()
        _ = life.lose([life.first])
        #expect(life.assign([life.second]) == [])
    }

    @Test func `a partition of deferred that is read to its end begins, and no other`() {
        #expect(life.lifecycle.endReached(life.rows) == [.markReplayed(life.rows)])
        #expect(life.lifecycle.endReached(life.first) == [])
        _ = life.lose([life.rows])
        #expect(life.lifecycle.endReached(life.rows) == [])
    }
}
