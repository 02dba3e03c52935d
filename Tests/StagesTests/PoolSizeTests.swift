// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

/// A pool that is offered more or less than it carries, in virtual time.
private struct SizedPool {
    var sizing: PoolSizing
    var now = MonotonicTime(nanoseconds: 0)
    var streamsEach = 1000
    /// The way to the server and back.
    var distance = Duration.milliseconds(50)
    /// What an answer takes.
    var answerTime: Duration?
    var faultsEachTurn = 0
    /// Connections that the server lets this pool have.
    var servingMax = Int.max

    init(_ bounds: ClosedRange<Int>) {
        sizing = PoolSizing(bounds: bounds, at: now)
        // The first push of a connection finds nobody before it.
        sizing.accepted(after: distance)
    }

    /// A turn every 10 ms with so many pushes at once on offer, an answer in each.
    mutating func run(_ time: Duration, offered: Int) {
        let end = now + time
        while now < end {
            let serving = min(sizing.wanted, servingMax)
            let streams = serving * streamsEach
            let inFlight = min(offered, streams)
            sizing.accepted(after: answerTime ?? distance)
            sizing.turned(
                PoolSizing.Load(
                    waiting: offered - inFlight, inFlight: inFlight, serving: serving,
                    streams: streams, isFull: inFlight == streams), at: now)
            if faultsEachTurn > 0 { sizing.faulted(faultsEachTurn) }
            now = now + .milliseconds(10)
        }
    }
}

@Suite struct `A pool's size` {
    @Test func `a pool's size is the least there may be while streams are left`() {
        var pool = SizedPool(1...8)
        pool.run(.seconds(60), offered: 1000)
        #expect(pool.sizing.wanted == 1)
    }

    @Test func `a pool's size grows one by one to what the load takes, and no further`() {
        var pool = SizedPool(1...8)
        var steps: [Int] = []
        for _ in 0..<100 {
            pool.run(.milliseconds(100), offered: 4500)
            steps.append(pool.sizing.wanted)
        }
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $1 - $0 <= 1 })
        #expect(steps.last == 5)
        #expect(pool.sizing.meanAnswer == .milliseconds(50))
    }

    @Test func `a pool's size stays within its bounds`() {
        var pool = SizedPool(2...3)
        #expect(pool.sizing.wanted == 2)
        pool.run(.seconds(60), offered: 100_000)
        #expect(pool.sizing.wanted == 3)
    }

    @Test func `a pool's size does not grow for a burst`() {
        var pool = SizedPool(1...8)
        for _ in 0..<50 {
            pool.run(.milliseconds(60), offered: 5000)
            pool.run(.milliseconds(140), offered: 100)
        }
        #expect(pool.sizing.wanted == 1)
    }

    @Test func `a pool's size does not grow where answers take longer than the distance`() {
        var pool = SizedPool(1...8)
        pool.answerTime = .milliseconds(120)
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 1)
        pool.answerTime = .milliseconds(90)
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted > 1)
    }

    @Test func `a pool's size takes no slow server for a distant one, however long it is slow`() {
        var pool = SizedPool(1...8)
        pool.answerTime = .milliseconds(120)
        pool.run(.seconds(7200), offered: 5000)
        #expect(pool.sizing.wanted == 1)
    }

    @Test func `a pool's size forgets a distance that it has not seen for long`() {
        var pool = SizedPool(1...8)
        pool.distance = .milliseconds(120)
        pool.run(.seconds(1300), offered: 100)
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 5)
    }

    @Test func `a pool's size has its connections again after a rest in which it lost them`() {
        var pool = SizedPool(1...8)
        pool.run(.seconds(20), offered: 4500)
        #expect(pool.sizing.wanted == 5)
        pool.servingMax = 1
        pool.run(.seconds(300), offered: 0)
        #expect(pool.sizing.wanted == 5)
    }

    @Test func `a pool's size takes no answer of more than a second for a distance`() {
        var pool = SizedPool(1...8)
        pool.answerTime = .milliseconds(1100)
        pool.distance = .milliseconds(1100)
        pool.sizing = PoolSizing(bounds: 1...8, at: pool.now)
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 1)
    }

    @Test func `a pool's size does not grow while a tenth of the answers are faults`() {
        var pool = SizedPool(1...8)
        pool.faultsEachTurn = 30
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 1)
        pool.faultsEachTurn = 10
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 5)
    }

    @Test func `a pool's size grows where bytes and not streams are what a connection is full of`()
    {
        var sizing = PoolSizing(bounds: 1...8, at: MonotonicTime(nanoseconds: 0))
        for turn in 0..<1000 {
            sizing.accepted(after: .milliseconds(50))
            sizing.turned(
                PoolSizing.Load(waiting: 10, inFlight: 8, serving: 1, streams: 100, isFull: true),
                at: MonotonicTime(nanoseconds: Int64(turn) * 10_000_000))
        }
        #expect(sizing.wanted == 2)
    }

    @Test func `a pool's size does not grow without an accepted push`() {
        var sizing = PoolSizing(bounds: 1...8, at: MonotonicTime(nanoseconds: 0))
        for second in 0..<100 {
            sizing.turned(
                PoolSizing.Load(
                    waiting: 10, inFlight: 1000, serving: 1, streams: 1000, isFull: true),
                at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000))
        }
        #expect(sizing.wanted == 1)
    }

    @Test func `a pool's size does not make up for a stream limit that was lowered`() {
        var pool = SizedPool(1...8)
        pool.run(.seconds(10), offered: 500)
        pool.streamsEach = 100
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 1)
        pool.streamsEach = 1000
        pool.run(.seconds(60), offered: 5000)
        #expect(pool.sizing.wanted == 5)
    }

    @Test func `a pool's size follows a limit that stays low, after a while`() {
        var pool = SizedPool(1...8)
        pool.run(.seconds(10), offered: 500)
        pool.streamsEach = 500
        pool.run(.seconds(1500), offered: 2000)
        #expect(pool.sizing.wanted == 4)
    }

    @Test func `a pool's size waits for one connection before it asks for another`() {
        var pool = SizedPool(1...8)
        pool.servingMax = 1
        pool.run(.seconds(30), offered: 5000)
        #expect(pool.sizing.wanted == 2)
    }

    @Test func `a pool's size gives up a connection that it cannot have, and asks much later`() {
        var pool = SizedPool(1...8)
        pool.servingMax = 2
        pool.run(.seconds(120), offered: 5000)
        #expect(pool.sizing.wanted == 2)
        pool.servingMax = .max
        pool.run(.seconds(400), offered: 5000)
        #expect(pool.sizing.wanted == 2)
        pool.run(.seconds(300), offered: 5000)
        #expect(pool.sizing.wanted == 5)
    }

    @Test func `a pool's size is never less than its least, though no connection can be had`() {
        var pool = SizedPool(2...8)
        for most in [0, 1] {
            pool.servingMax = most
            pool.run(.seconds(300), offered: 100)
            #expect(pool.sizing.wanted == 2)
        }
    }

    @Test func `a pool's size shrinks slowly when half of one connection fewer would do`() {
        var pool = SizedPool(1...8)
        pool.run(.seconds(20), offered: 3500)
        #expect(pool.sizing.wanted == 4)
        // The first ten minutes hold the peak.
        pool.run(.seconds(600), offered: 100)
        #expect(pool.sizing.wanted == 4)
        pool.run(.seconds(600), offered: 100)
        #expect(pool.sizing.wanted == 3)
        pool.run(.seconds(3000), offered: 1000)
        #expect(pool.sizing.wanted == 2)
        pool.run(.seconds(3000), offered: 100)
        #expect(pool.sizing.wanted == 1)
    }
}
