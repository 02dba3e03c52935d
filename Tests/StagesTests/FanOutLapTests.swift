// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@Suite struct `Fan-outs and their laps` {
    @Test(arguments: ["priority", "expiration", "delay"])
    func `events that ask for different things are fanned out apart`(difference: String) {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 3)
        bench.start(subject: 1, partition: 1, count: 3) { request in
            switch difference {
            case "priority": request.priority = 5
            case "expiration": request.expiration = .deadline
            default: request.notBefore = .after(.seconds(60))
            }
        }
        #expect(bench.fanOuts.count == 2)
    }

    @Test(arguments: [[10, 20], [20, 10]])
    func `a shared fan-out lives as long as the longest of its events`(lives: [Int]) {
        var bench = FanOutBench()
        for life in lives {
            bench.start(subject: 1, partition: 0, count: 3) {
                $0.expiresAt = .after(.seconds(life))
            }
        }
        guard case .visit(_, let fanOut) = bench.step(most: 1, count: { _ in 3 }) else {
            Issue.record("nothing was visited")
            return
        }
        #expect(bench.fanOuts.request(of: fanOut).expiresAt == .after(.seconds(20)))
    }

    @Test func `a lap is named after the first event that asked for it`() {
        var bench = FanOutBench()
        for _ in 0..<3 {
            bench.start(subject: 1, partition: 0, count: 4)
            _ = bench.step(most: 1) { _ in 4 }
        }
        var origins: [Int64] = []
        while case .visit(_, let fanOut) = bench.step(most: 1, count: { _ in 4 }) {
            let origin = bench.fanOuts.request(of: fanOut).origin!.offset
            if origins.last == origin { continue }
            origins.append(origin)
            // Another lap is asked for during the second.
            if origins == [0, 1] { bench.start(subject: 1, partition: 0, count: 4) }
        }
        #expect(origins == [0, 1, 3])
    }

    @Test func `a fan-out does not end before the entries that it has passed are visited`() {
        let subject = SubjectID(rawValue: 1)
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 2)
        bench.fanOuts.awaitVisits(of: subject, 1)
        while case .visit = bench.step(most: 1, count: { _ in 2 }) {}
        bench.checkInvariants()
        let (isFanningOut, held) = (bench.fanOuts.isFanningOut(subject), bench.committableOffset(0))
        #expect(isFanningOut && held == 0)
        bench.fanOuts.awaitVisits(of: subject, -1)
        while case .visit = bench.step(most: 1, count: { _ in 2 }) {}
        let (isLeft, released) = (!bench.fanOuts.isFanningOut(subject), bench.committableOffset(0))
        #expect(isLeft && released == 1)
    }

    @Test func `a fan-out gives its body back when it ends, once`() {
        var bench = FanOutBench()
        let body = bench.bodies.insert("news")
        bench.start(subject: 1, partition: 0, count: 1) {
            $0.ask(for: .someAlert)
            $0.body = body
        }
        _ = bench.step(most: 1) { _ in 1 }
        #expect(bench.bodies.count == 1)
        _ = bench.step(most: 1) { _ in 1 }
        #expect(bench.bodies.count == 0)
        bench.checkInvariants()
    }
}
