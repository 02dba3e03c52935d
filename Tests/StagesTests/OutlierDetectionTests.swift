// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

/// A pool's connections as a transport keeps them, in virtual time.
private final class Connections {
    var detection = OutlierDetection(backoff: Backoff(least: .seconds(1), most: .seconds(60)))
    var healths: [ConnectionHealth]
    var inFlight: [Int]
    private var tokens: UInt64 = 0

    init(_ count: Int) {
        healths = Array(repeating: ConnectionHealth(), count: count)
        inFlight = Array(repeating: 0, count: count)
    }

    var census: OutlierDetection.Census {
        var census = OutlierDetection.Census()
        for health in healths { census.add(health) }
        return census
    }

    func succeed(_ count: Int, on index: Int, at time: Duration = .zero) {
        healths[index].succeeded(count, at: .after(time))
    }

    /// - Returns: whether the last of these faults was the pool's.
    @discardableResult
    func fail(
        _ count: Int = 1, on index: Int, _ failure: ConnectionHealth.Failure = .fault,
        at time: Duration = .zero
    ) -> Bool {
        for _ in 0..<count {
            tokens += 1
            healths[index].failed(failure, token: tokens)
            detection.failed(failure)
        }
        return detection.isOfPool(census, at: .after(time))
    }

    func judge(at time: Duration = .zero) -> [OutlierDetection.Judgement] {
        var census = census
        if detection.began(census, at: .after(time)) {
            for index in healths.indices { healths[index].forget() }
            census = self.census
        }
        return healths.indices.map { index in
            detection.judge(
                healths[index], inFlight: inFlight[index], in: census, at: .after(time))
        }
    }

    func replace(_ index: Int, at time: Duration = .zero) {
        detection.replaced(left: healths.count - 1, at: .after(time))
        healths[index] = detection.opened(others: healths.count - 1)
    }
}

@Suite struct `Outlier detection` {
    @Test func `an outlier of four connections is retired after twenty answers`() {
        let pool = Connections(4)
        for index in 1..<4 { pool.succeed(10, on: index) }
        for count in 1...20 {
            let isOfPool = pool.fail(on: 0)
            #expect(!isOfPool, "fault \(count)")
            let judgements = pool.judge()
            let first: OutlierDetection.Judgement = count < 20 ? .keep : .retire(.failures)
            #expect(judgements == [first, .keep, .keep, .keep], "fault \(count)")
        }
    }

    @Test(arguments: [ConnectionHealth.Failure.fault, .refusal])
    func `an outlier that failed only half of its requests is one all the same`(
        failure: ConnectionHealth.Failure
    ) {
        let pool = Connections(2)
        pool.succeed(32, on: 1)
        for _ in 0..<15 {
            pool.fail(on: 0, failure)
            pool.succeed(1, on: 0)
        }
        #expect(pool.judge() == [.retire(.failures), .keep])
    }

    @Test func `no connection is an outlier where the others fail a third as often`() {
        let pool = Connections(4)
        pool.fail(32, on: 0)
        for index in 1..<4 {
            pool.succeed(24, on: index)
            pool.fail(on: index)
            pool.succeed(3, on: index)
            pool.fail(on: index)
            pool.succeed(3, on: index)
        }
        #expect(pool.judge()[0] == .retire(.failures))
        for index in 1..<4 {
            for _ in 0..<11 {
                pool.fail(on: index)
                pool.succeed(2, on: index)
            }
        }
        #expect(pool.judge()[0] == .keep)
    }

    @Test func `a fault is the pool's once most of its connections have faults`() {
        let pool = Connections(4)
        for index in 0..<4 { pool.succeed(32, on: index) }
        var isOfPool: [Bool] = []
        for index in 0..<3 { isOfPool.append(pool.fail(3, on: index)) }
        #expect(isOfPool == [false, false, true])
    }

    @Test func `of a pool without faults but one no fault is the pool's, however many there are`() {
        for count in 2...12 {
            let pool = Connections(count)
            for index in 1..<count { pool.succeed(1, on: index) }
            let isOfPool = pool.fail(1000, on: 0)
            #expect(!isOfPool)
        }
    }

    @Test func `an only connection is replaced once before its faults are the pool's`() {
        let pool = Connections(1)
        pool.succeed(32, on: 0)
        #expect(!pool.fail(100, on: 0))
        #expect(pool.judge() == [.retire(.allFail)])
        pool.replace(0)
        #expect(pool.fail(on: 0))
    }

    @Test func `an only connection that has proven itself may be replaced again`() {
        let pool = Connections(1)
        pool.fail(3, on: 0)
        pool.replace(0)
        pool.succeed(20, on: 0)
        _ = pool.judge()
        #expect(pool.fail(3, on: 0, at: .milliseconds(999)), "it may not be replaced yet")
        pool.succeed(20, on: 0)
        #expect(!pool.fail(3, on: 0, at: .seconds(1)))
    }

    @Test func `connections that end after a fault each leave the next one doubted`() {
        let pool = Connections(1)
        pool.healths[0] = pool.detection.opened(others: 0)
        #expect(!pool.fail(on: 0))
        pool.healths[0] = pool.detection.opened(others: 0)
        #expect(pool.fail(on: 0))
        pool.detection.accepted(after: .milliseconds(20))
        #expect(!pool.detection.opened(others: 0).isFaulting)
    }

    @Test func `two ill connections of four are both outliers`() {
        let pool = Connections(4)
        for index in 0..<2 { pool.fail(32, on: index) }
        for index in 2..<4 { pool.succeed(32, on: index) }
        #expect(pool.judge() == [.retire(.failures), .retire(.failures), .keep, .keep])
    }

    @Test func `connections that have answered nothing yet prove nothing`() {
        let refused = Connections(4)
        refused.fail(32, on: 0, .refusal)
        #expect(refused.judge()[0] == .keep)
        let faulting = Connections(4)
        #expect(faulting.fail(3, on: 0), "nobody says that the others do better")
    }

    @Test func `an outlier is avoided while the last replacement is too recent`() {
        let pool = Connections(3)
        for index in 1..<3 { pool.succeed(32, on: index) }
        var waits: [Int] = []
        var now = 0
        for _ in 0..<8 {
            pool.fail(20, on: 0)
            var waited = 0
            while pool.judge(at: .seconds(now))[0] == .avoid {
                waited += 1
                now += 1
            }
            waits.append(waited)
            pool.replace(0, at: .seconds(now))
        }
        #expect(waits == [0, 1, 2, 4, 8, 16, 32, 60])
    }

    @Test func `while all connections fail few are opened, and none is avoided`() {
        let pool = Connections(4)
        for index in 0..<4 { pool.fail(32, on: index) }
        var replaced = 0
        for second in 0..<3600 {
            for index in 0..<4 { pool.fail(2, on: index) }
            let judgements = pool.judge(at: .seconds(second))
            #expect(!judgements.contains(.avoid))
            if let index = judgements.firstIndex(of: .retire(.allFail)) {
                replaced += 1
                pool.replace(index, at: .seconds(second))
                // What is opened now is doubted: the pool is as ill as before.
                #expect(pool.census.mostAreFaulting)
            }
        }
        #expect((50...70).contains(replaced))
    }

    @Test func `two failed probes lead to another connection`() {
        let pool = Connections(2)
        for index in 0..<2 { pool.fail(3, on: index) }
        #expect(pool.judge() == [.retire(.allFail), .retire(.allFail)])
        pool.replace(0)
        pool.fail(on: 0)
        #expect(pool.judge(at: .seconds(100)) == [.keep, .keep])
        pool.fail(on: 1)
        #expect(pool.judge(at: .seconds(100)).contains(.retire(.allFail)))
    }

    @Test func `what failed while all did is forgotten once most recover`() {
        let pool = Connections(3)
        for index in 0..<3 { pool.fail(32, on: index) }
        _ = pool.judge()
        pool.replace(0)
        pool.succeed(32, on: 0, at: .seconds(100))
        pool.succeed(8, on: 1, at: .seconds(100))
        #expect(pool.judge(at: .seconds(100)) == [.keep, .keep, .keep])
        #expect(pool.healths[2].failures == 0)
        #expect(pool.census.faulting == 0, "what was doubted has proven itself")
    }

    @Test func `a connection that is silent while others answer is retired after three seconds`() {
        let pool = Connections(3)
        pool.healths[0].woken(at: .after(.zero))
        pool.inFlight[0] = 5
        let answered: [Duration] = [.zero, .milliseconds(2_999), .seconds(3)]
        let judgements = answered.map { time in
            pool.succeed(1, on: 1, at: time)
            return pool.judge(at: time)[0]
        }
        #expect(judgements == [.keep, .keep, .retire(.silence)])
    }

    @Test func `a silence is none where nothing is in flight, others are silent or all are slow`() {
        let pool = Connections(2)
        pool.succeed(1, on: 1, at: .seconds(9))
        #expect(pool.judge(at: .seconds(9)) == [.keep, .keep])
        pool.inFlight = [1, 1]
        pool.healths[0].woken(at: .after(.seconds(9)))
        pool.healths[1].woken(at: .after(.seconds(9)))
        #expect(pool.judge(at: .seconds(20)) == [.keep, .keep])
        pool.detection.accepted(after: .seconds(4))
        pool.succeed(1, on: 1, at: .seconds(20))
        #expect(pool.judge(at: .seconds(20)) == [.keep, .keep])
        pool.succeed(1, on: 1, at: .seconds(21))
        #expect(pool.judge(at: .seconds(21)) == [.retire(.silence), .keep])
    }
}

@Suite struct `A connection's health` {
    @Test func `a connection's load doubles with each recent failure`() {
        var health = ConnectionHealth()
        #expect(health.load(inFlight: 3) == 4)
        for token in 1...3 as ClosedRange<UInt64> { health.failed(.refusal, token: token) }
        #expect(health.load(inFlight: 3) == 32)
        health.succeeded(7, at: .after(.zero))
        #expect(health.load(inFlight: 3) == 8)
        health.succeeded(1000, at: .after(.zero))
        #expect(health.load(inFlight: 0) == 1 && health.answers == ConnectionHealth.window)
    }

    @Test func `a connection's health counts the failures of one token once`() {
        var health = ConnectionHealth()
        for _ in 0..<20 {
            health.failed(.fault, token: 7)
            health.succeeded(1, at: .after(.zero))
        }
        #expect(health.failures == 1 && !health.isFaulting)
    }

    @Test func `a connection's health takes refusals for no faults`() {
        var health = ConnectionHealth()
        for token in 1...8 as ClosedRange<UInt64> { health.failed(.refusal, token: token) }
        #expect(health.failures == 8 && !health.isFaulting)
    }

    @Test func `a connection that is doubted proves itself with three answers`() {
        var health = ConnectionHealth(isDoubted: true)
        let isFaulting = (0..<4).map { _ in
            defer { health.succeeded(1, at: .after(.zero)) }
            return health.isFaulting
        }
        #expect(isFaulting == [true, true, true, false])
    }
}
