// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

/// A flooded topic is left in Kafka for a while, and no other is.
@Suite struct `Turns of topics` {
    private static let slots = 8000

    private func load(
        _ events: [Int?], isShort: Bool = false, ended: Int = 0
    ) -> TopicTurns.Load {
        TopicTurns.Load(
            events: events, slots: Self.slots, isShortOfRoom: isShort, ended: ended)
    }

    /// Expectations cannot change what they look at, unless that is an object.
    private final class Turns {
        private var turns: TopicTurns

        init(topics: Int) { turns = TopicTurns(topics: topics) }

        func next(_ load: TopicTurns.Load, _ milliseconds: Int64) -> Bool {
            turns.next(load, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
        }

        func isWaiting(_ topic: Int) -> Bool { turns.isWaiting(topic) }
        var isAnyWaiting: Bool { turns.isAnyWaiting }
        var waits: [Int] { turns.waits }
    }

    @Test func `a topic with an eighth of the room waits until half of that has ended`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([999, 3]), 0))
        #expect(turns.next(load([1000, 3]), 5))
        #expect(turns.isWaiting(0) && !turns.isWaiting(1))
        #expect(!turns.next(load([1200, 3]), 10), "what was read ahead still comes")
        #expect(!turns.next(load([501, 3]), 15))
        #expect(turns.isWaiting(0))
        #expect(turns.next(load([500, 3]), 20))
        #expect(!turns.isAnyWaiting && turns.waits == [1, 0])
    }

    @Test func `a topic alone never waits`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([8000, nil], isShort: true), 0))
        let one = Turns(topics: 1)
        #expect(!one.next(load([8000], isShort: true), 0))
    }

    @Test func `what ends in a second is no crowd, and half of the room always is`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([0, 0]), 0))
        #expect(!turns.next(load([900, 0], ended: 3000), 1000))
        #expect(!turns.next(load([2999, 0], ended: 3000), 1010))
        #expect(turns.next(load([3000, 0], ended: 3000), 1020))

        let fast = Turns(topics: 2)
        #expect(!fast.next(load([0, 0]), 0))
        #expect(!fast.next(load([3999, 0], ended: 50_000), 1000))
        #expect(fast.next(load([4000, 0], ended: 50_000), 1010))
    }

    @Test func `without room those wait that have taken it, and the quiet one does not`() {
        let turns = Turns(topics: 3)
        #expect(turns.next(load([400, 300, 12], isShort: true), 0))
        #expect(turns.isWaiting(0) && turns.isWaiting(1) && !turns.isWaiting(2))
        #expect(turns.next(load([200, 200, 12], isShort: true), 5))
        #expect(turns.isWaiting(1), "each until half of its own has ended")
    }

    @Test func `a topic whose partitions are all gone waits no longer`() {
        let turns = Turns(topics: 3)
        #expect(turns.next(load([5000, 0, 0]), 0))
        #expect(turns.next(load([nil, 0, 0]), 5))
        #expect(!turns.isAnyWaiting)
    }

    @Test func `nothing waits while nothing is under way`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([0, 0], isShort: true), 0))
    }
}
