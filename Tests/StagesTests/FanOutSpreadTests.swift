// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The spread of a fan-out` {
    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func `a spread fan-out visits what time has earned, and says when the next is due`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 100, spread: (.seconds(10), time(0)))
        let visited1 = bench.visited(at: time(0), of: 100)
        #expect(visited1 == 0)
        #expect(bench.fanOuts.nextSpread == time(100))
        let visited2 = bench.visited(at: time(100), of: 100)
        #expect(visited2 == 1)
        let visited3 = bench.visited(at: time(450), of: 100)
        #expect(visited3 == 3)
        // Half a second is made good, no more.
        let visited4 = bench.visited(at: time(5000), of: 100)
        #expect(visited4 == 5)
        var visited = 9
        for tick in 51..<200 { visited += bench.visited(at: time(Int64(tick) * 100), of: 100) }
        #expect(visited == 100 && bench.fanOuts.isEmpty)
        #expect(bench.fanOuts.nextSpread == .distantFuture)
    }

    @Test(arguments: 0...3)
    func `a shard ends though its list has become shorter than the shards are many`(left: Int) {
        var bench = FanOutBench()
        let rounds = FanOutRounds(of: TokenShard(index: 1, count: 3), count: 100)
        bench.start(
            subject: 1, partition: 0, count: 100, spread: (.seconds(2), time(0)), rounds: rounds)
        for tick in 1...400 { _ = bench.visited(at: time(Int64(tick) * 100), of: left) }
        let isDone = bench.fanOuts.isEmpty
        #expect(isDone)
    }

    @Test func `a fan-out without a spread goes on beside one that waits`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 100, spread: (.seconds(10), time(0)))
        bench.start(subject: 2, partition: 1, count: 50)
        let visited5 = bench.visited(at: time(0), of: 50)
        #expect(visited5 == 50)
        #expect(bench.fanOuts.count == 1)
    }

    @Test func `a fan-out that stands still visits nothing, and ends if it has met all`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 10, spread: (.seconds(1), time(0)))
        let visited6 = bench.visited(at: time(5000), of: 10, standsStill: true)
        #expect(visited6 == 0)
        let visited7 = bench.visited(at: time(5000), of: 10)
        #expect(visited7 > 0)
        // All that is left is gone from the list.
        let visited8 = bench.visited(at: time(5000), of: 0, standsStill: true)
        #expect(visited8 == 0)
        let isDone = bench.fanOuts.isEmpty
        #expect(isDone)
    }
}
