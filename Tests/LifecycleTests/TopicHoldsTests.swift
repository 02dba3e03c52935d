// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Lifecycle
import Pipeline
import PushModel
import Testing

/// Two topics of events with one partition each.
@Suite struct `Holds of topics` {
    private static let first = AssignmentID(ordinal: 0, epoch: 1)
    private static let second = AssignmentID(ordinal: 1, epoch: 1)

    private var holds = TopicHolds(topics: 2)

    init() {
        holds.assigned(Self.first, topic: 0)
        holds.assigned(Self.second, topic: 1)
    }

    @Test mutating func `a partition is read unless somebody says no`() {
        #expect(holds.cause(of: Self.first) == nil && holds.cause(of: Self.second) == nil)
        holds.pausedTopics([true, false])
        #expect(holds.cause(of: Self.first) == .paused && holds.cause(of: Self.second) == nil)
    }

    @Test mutating func `a record that waits holds its partition, and no other of its topic`() {
        let third = AssignmentID(ordinal: 2, epoch: 1)
        holds.assigned(third, topic: 0)
        holds.recordWaits(of: Self.first)
        #expect(holds.cause(of: Self.first) == .record && holds.cause(of: third) == nil)
        holds.recordsRead(of: Self.first)
        #expect(holds.cause(of: Self.first) == nil)
    }

    @Test mutating func `each no is its own, and the partition is read when the last is gone`() {
        holds.recordWaits(of: Self.first)
        holds.pausedTopics([true, false])
        holds.recordsRead(of: Self.first)
        #expect(holds.cause(of: Self.first) == .paused)
        holds.recordWaits(of: Self.first)
        holds.pausedTopics([false, false])
        #expect(holds.cause(of: Self.first) == .record)
        holds.recordsRead(of: Self.first)
        #expect(holds.cause(of: Self.first) == nil)
    }

    @Test mutating func `a topic that has taken the room waits for its turn`() {
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        #expect(!holds.isLookDue(isShortOfRoom: false, now: now))
        #expect(holds.isLookDue(isShortOfRoom: true, now: now))
        let flooded = EventBound(
            taken: [98, 1], total: 99, isShort: true, isHalfFree: false)
        let waits = holds.look([flooded], now: now)
        #expect(waits)
        #expect(holds.cause(of: Self.first) == .turn && holds.cause(of: Self.second) == nil)
        // Again only after a while, and then also without a bound that is short.
        #expect(!holds.isLookDue(isShortOfRoom: true, now: now + .milliseconds(4)))
        #expect(holds.isLookDue(isShortOfRoom: false, now: now + .milliseconds(5)))
        #expect(holds.nextDue(isShortOfRoom: false) == now + .milliseconds(5))
        let free = EventBound(
            taken: [10, 1], total: 11, isShort: false, isHalfFree: true)
        let isReadAgain = holds.look([free], now: now + .milliseconds(5))
        #expect(isReadAgain)
        #expect(holds.cause(of: Self.first) == nil)
        #expect(holds.nextDue(isShortOfRoom: false) == .distantFuture)
    }

    @Test mutating func `a partition that is given up takes its waiting record along`() {
        holds.recordWaits(of: Self.first)
        holds.unassigned(Self.first)
        #expect(holds.cause(of: Self.first) == nil && holds.topics == [Self.second: 1])
        // It comes back, and is read from its first record on.
        holds.assigned(Self.first, topic: 0)
        #expect(holds.cause(of: Self.first) == nil)
    }
}
