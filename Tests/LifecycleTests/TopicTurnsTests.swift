// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Pipeline

/// A flooded topic is left in Kafka for a while, and no other is.
@Suite struct `Turns of topics` {
    /// One bound, of which each topic has taken so much.
    private func load(
        _ taken: [Int?], total: Int? = nil, isShort: Bool = false, isHalfFree: Bool = false
    ) -> [EventBound] {
        let total = total ?? taken.reduce(0) { $0 + ($1 ?? 0) }
        return [EventBound(taken: taken, total: total, isShort: isShort, isHalfFree: isHalfFree)]
    }

    /// Expectations cannot change what they look at, unless that is an object.
    private final class Turns {
        private var turns: TopicTurns

        init(topics: Int) { turns = TopicTurns(topics: topics) }

        func next(_ load: [EventBound], _ milliseconds: Int64) -> Bool {
            turns.next(load, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
        }

        func isWaiting(_ topic: Int) -> Bool { turns.isWaiting(topic) }
        var isAnyWaiting: Bool { turns.isAnyWaiting }
        var waits: [Int] { turns.waits }
    }

    @Test func `nothing waits while there is room`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([50_000, 3]), 0))
        #expect(!turns.isAnyWaiting)
    }

    @Test func `without room those wait that have taken it, and the quiet one does not`() {
        let turns = Turns(topics: 3)
        #expect(turns.next(load([400, 300, 12], isShort: true), 0))
        #expect(turns.isWaiting(0) && turns.isWaiting(1) && !turns.isWaiting(2))
        #expect(!turns.next(load([420, 280, 12], isShort: true), 5), "some were read ahead")
        #expect(turns.waits == [1, 1, 0])
    }

    @Test func `a topic whose payloads fill their room waits, though half of the slots are free`() {
        let turns = Turns(topics: 2)
        let slots = load([3, 40], isHalfFree: true)
        let short = slots + load([400, 3], isShort: true)
        #expect(turns.next(short, 0))
        #expect(!turns.next(short, 5), "it is not left and read again in each turn")
        #expect(turns.isWaiting(0) && !turns.isWaiting(1) && turns.waits == [1, 0])
        #expect(!turns.next(slots + load([201, 3]), 10))
        #expect(turns.next(slots + load([200, 3]), 15), "half of its payloads have gone")
    }

    @Test func `a topic waits for what it has taken most of, whatever it has of the rest`() {
        let turns = Turns(topics: 2)
        let recentEvents = load([0, 500_000])
        #expect(turns.next(load([900, 3], isShort: true) + recentEvents, 0))
        #expect(turns.isWaiting(0) && !turns.isWaiting(1), "the second has few slots")
        #expect(turns.next(load([450, 3]) + recentEvents, 5))
        #expect(!turns.isAnyWaiting)
    }

    @Test func `nobody waits for what topics that have left have taken`() {
        let turns = Turns(topics: 3)
        #expect(!turns.next(load([20, 10, nil], total: 8000, isShort: true), 0))
        #expect(!turns.isAnyWaiting)
    }

    @Test func `a topic alone never waits`() {
        let turns = Turns(topics: 2)
        #expect(!turns.next(load([8000, nil], isShort: true), 0))
        let one = Turns(topics: 1)
        #expect(!one.next(load([8000], isShort: true), 0))
    }

    @Test func `a topic waits a second, or until half of its events have ended`() {
        let turns = Turns(topics: 2)
        #expect(turns.next(load([1000, 3], isShort: true), 0))
        #expect(!turns.next(load([501, 3]), 999), "what was fetched would be fetched again")
        #expect(turns.next(load([501, 3]), 1000))
        #expect(!turns.isAnyWaiting)

        #expect(turns.next(load([1000, 3], isShort: true), 2000))
        #expect(turns.next(load([500, 3]), 2005))
        #expect(!turns.isAnyWaiting && turns.waits == [2, 0])
    }

    @Test func `a topic waits no longer once half of the room is free`() {
        let turns = Turns(topics: 2)
        #expect(turns.next(load([1000, 3], isShort: true), 0))
        #expect(turns.next(load([900, 3], isHalfFree: true), 5))
        #expect(!turns.isAnyWaiting)
    }

    /// Some wait for Kafka to take their dead letters, and take no room.
    @Test func `a topic whose events do not end is read again while there is room`() {
        let turns = Turns(topics: 2)
        #expect(turns.next(load([1, 0], isShort: true), 0))
        #expect(!turns.next(load([1, 0], isShort: true), 5000), "there is none yet")
        #expect(turns.next(load([1, 0]), 5005))
        #expect(!turns.isAnyWaiting)
    }

    @Test func `a topic whose partitions are all gone waits no longer`() {
        let turns = Turns(topics: 3)
        #expect(turns.next(load([5000, 0, 0], isShort: true), 0))
        #expect(turns.next(load([nil, 0, 0], isShort: true), 5))
        #expect(!turns.isAnyWaiting)
    }
}
