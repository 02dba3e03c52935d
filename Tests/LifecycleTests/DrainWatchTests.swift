// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Pipeline

/// How long partitions that are given up keep their group waiting.
@Suite struct `The watch over a drain` {
    private var watch = DrainWatch()
    private var load = PipelineLoad()
    private var counters = Counters()

    private mutating func isOver(at milliseconds: Int64) -> Bool {
        watch.isOver(
            load, counters,
            now: Now(
                monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000),
                wall: WallTime(milliseconds: 0)))
    }

    @Test mutating func `the watch over a drain waits for nothing where nothing is under way`() {
        load.deferred = 5
        load.claims = 2
        let isOver = isOver(at: 0)
        #expect(isOver)
    }

    @Test mutating func `the watch over a drain does not wait for a record that Kafka refuses`() {
        load.unacknowledged = 2
        load.refused = 1
        let before = isOver(at: 0)
        load.refused = 2
        let after = isOver(at: 1)
        #expect(!before && after)
    }

    @Test mutating func `the watch over a drain waits as long as something ends`() {
        load.inFlight = 100
        for second in 0..<50 as Range<Int64> {
            load.inFlight -= 1
            let isOver = isOver(at: second * 2900)
            #expect(!isOver)
        }
    }

    @Test mutating func `the watch over a drain gives up what does not end any more`() {
        load.inFlight = 1
        var seen: [Bool] = []
        for time in [0, 2999, 3000] as [Int64] { seen.append(isOver(at: time)) }
        #expect(seen == [false, false, true])
    }

    @Test mutating func `the watch over a drain takes a fan-out that only joins for progress`() {
        load.fanOuts = 1
        var seen: [Bool] = []
        for time in [0, 2000, 4000] as [Int64] {
            counters.pushesCoalesced += 2048
            seen.append(isOver(at: time))
        }
        #expect(seen == [false, false, false])
    }
}
