// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import KafkaLog

@Suite struct `The replay of tables` {
    private var replay = ReplayProgress(topics: 2)

    @Test mutating func `is complete when each partition of each topic has come to its end`() {
        replay.add(partitions: 2, of: 0)
        replay.add(partitions: 1, of: 1)
        var seen: [Bool] = []
        for (topic, partition) in [(0, 0), (0, 0), (1, 0), (0, 1)] {
            replay.reachedEnd(topic: topic, partition: partition)
            seen.append(replay.isCaughtUp)
        }
        #expect(seen == [false, false, false, true])
    }

    @Test mutating func `waits for a partition that is added on the way`() {
        replay.add(partitions: 1, of: 0)
        replay.add(partitions: 1, of: 0)
        replay.reachedEnd(topic: 0, partition: 0)
        let before = replay.isCaughtUp
        replay.reachedEnd(topic: 0, partition: 1)
        #expect(!before && replay.isCaughtUp)
    }

    @Test mutating func `stays complete when a partition is added afterwards`() {
        replay.add(partitions: 1, of: 0)
        replay.reachedEnd(topic: 0, partition: 0)
        replay.add(partitions: 1, of: 1)
        #expect(replay.isCaughtUp)
    }

    @Test mutating func `counts what has come to its end, by topic`() {
        replay.add(partitions: 3, of: 1)
        for partition in [2, 0, 2] { replay.reachedEnd(topic: 1, partition: partition) }
        let counts = [replay.caughtUp(topic: 0), replay.caughtUp(topic: 1)]
        #expect(counts == [0, 2])
    }
}
