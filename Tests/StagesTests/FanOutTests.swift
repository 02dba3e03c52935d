// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Glibc
internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The fan-out of events to their subjects' tokens` {
    @Test func `events that ask the same share a fan-out, and the later is held for its own lap`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 3)
        _ = bench.step(most: 1) { _ in 3 }
        bench.start(subject: 1, partition: 1, count: 3)
        #expect(bench.fanOuts.count == 1)
        var held: [[Int64]] = []
        for _ in 0..<5 {
            _ = bench.step(most: 1) { _ in 3 }
            bench.checkInvariants()
            held.append([bench.committableOffset(0), bench.committableOffset(1)])
        }
        // Two entries more for the first event; then one further for the second; then nothing.
        #expect(held == [[0, 0], [0, 0], [1, 0], [1, 1], [1, 1]])
        #expect(bench.fanOuts.isEmpty == true)
    }

    @Test func `events leave the claims of both laps to the pushes they make, older first`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 3)
        let first = bench.step(most: 1) { _ in 3 }
        bench.start(subject: 1, partition: 0, count: 3)
        guard case .visit(_, let fanOut) = first else {
            Issue.record("nothing was visited")
            return
        }
        var offsets: [Int64] = []
        bench.fanOuts.forEachClaim(of: fanOut) { offsets.append(bench.ledger.offset(of: $0)) }
        #expect(offsets == [0, 1])
        #expect(bench.fanOuts.request(of: fanOut).readSequence == 2)
    }

    @Test func `events of a second lap are named by the one that asked, not the one before`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 4)
        _ = bench.step(most: 1) { _ in 4 }
        bench.start(subject: 1, partition: 0, count: 4)
        var origins: [Int64] = []
        while case .visit(_, let fanOut) = bench.step(most: 1, count: { _ in 4 }) {
            origins.append(bench.fanOuts.request(of: fanOut).origin!.offset)
        }
        // Else the second push to a token would carry the `apns-id` of the first.
        #expect(origins == [0, 0, 0, 1])
    }

    @Test(arguments: [[nil, 5], [5, nil], [nil, 1]] as [[UInt8?]])
    func `events of differing priorities lower neither`(priorities: [UInt8?]) {
        var bench = FanOutBench()
        for (index, priority) in priorities.enumerated() {
            bench.start(subject: 1, partition: index, count: 5) { $0.priority = priority }
        }
        // No priority means that of the push type, which may be 10.
        var hasDefault = false
        while case .visit(_, let fanOut) = bench.step(most: 1, count: { _ in 5 }) {
            hasDefault = hasDefault || bench.fanOuts.request(of: fanOut).priority == nil
        }
        #expect(hasDefault)
    }

    @Test func `events with a payload are fanned out alone`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 2) { $0.ask(for: .someAlert) }
        bench.start(subject: 1, partition: 0, count: 2) { $0.ask(for: .someAlert) }
        bench.start(subject: 1, partition: 0, count: 2)
        #expect(bench.fanOuts.count == 3)
        #expect(bench.fanOuts.fanOuts(of: SubjectID(rawValue: 1)).count == 3)
    }

    @Test func `events for different tokens of a subject are fanned out apart`() {
        var bench = FanOutBench()
        bench.start(subject: 1, partition: 0, count: 2)
        bench.start(subject: 1, partition: 0, count: 2) { $0.filter.kinds = [KindID(rawValue: 3)] }
        #expect(bench.fanOuts.count == 2)
    }

    @Test func `events take turns, of as many tokens as they may`() {
        var bench = FanOutBench()
        for subject in 1...3 as ClosedRange<UInt32> {
            bench.start(subject: subject, partition: 0, count: 100)
        }
        var turns: [UInt32: Int] = [:]
        for _ in 0..<30 {
            let step = bench.step(most: 3) { _ in 100 }
            guard case .visit(let positions, let fanOut) = step else { break }
            turns[bench.fanOuts.request(of: fanOut).subject.rawValue, default: 0] += positions.count
        }
        #expect(turns == [1: 30, 2: 30, 3: 30])
    }

    @Test func `events are full at their bound and free again at the end`() {
        var bench = FanOutBench(cursorsMax: 2)
        bench.start(subject: 1, partition: 0, count: 1)
        #expect(bench.fanOuts.isFull == false)
        bench.start(subject: 2, partition: 0, count: 1)
        #expect(bench.fanOuts.isFull == true)
        while case .visit = bench.step(most: 1, count: { _ in 1 }) {}
        #expect(bench.fanOuts.isFull == false)
        #expect(bench.left.map(\.rawValue).sorted() == [1, 2])
        let isFanningOut = bench.fanOuts.isFanningOut(SubjectID(rawValue: 1))
        #expect(!isFanningOut)
    }

    /// What the processor has spent on this thread, in nanoseconds.
    private func threadTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// As an entry finds them that has come to be where they have passed.
    @Test func `events are found in turn at little cost, however many their subject has`() {
        let most = 4096
        var ledger = OffsetTracker(registrationGrace: .zero)
        let assignment = ledger.open(startOffset: 0)
        var fanOuts = FanOutTable(cursorsMax: most)
        for number in 0..<most {
            let claim = ledger.read(assignment, Int64(number))
            var request = FanOutRequest(
                subject: SubjectID(rawValue: number % 4 == 1 ? 2 : 1),
                filter: AudienceFilter(environment: nil),
                expiresAt: .after(.seconds(3600)),
                origin: RecordPosition(topic: 0, partition: 0, offset: Int64(number)),
                readSequence: UInt64(number), subjectTag: 1)
            request.ask(for: .someAlert)
            fanOuts.start(request, count: 1, claim: claim, &ledger)
        }
        func findAll(below end: Int) -> Int {
            let expected = (2..<end).filter { $0 % 4 != 1 }
            let start = threadTime()
            for _ in 0..<100 {
                var found: [Int] = []
                var left = 2..<end
                while let fanOut = fanOuts.fanOut(of: SubjectID(rawValue: 1), in: left) {
                    found.append(fanOuts.number(of: fanOut))
                    left = found.last! + 1..<end
                }
                #expect(found == expected)
            }
            return threadTime() - start
        }
        // Looking through all of them for each would take sixteen times as long for four times as many.
        let few = findAll(below: most / 4)
        #expect(findAll(below: most - 1) < 10 * few)
        #expect(fanOuts.fanOut(of: SubjectID(rawValue: 2), in: 6..<9) == nil)
        #expect(fanOuts.fanOut(of: SubjectID(rawValue: 3), in: 0..<most) == nil)
    }

    @Test func `events over random lists reach every token that stayed, and are held until then`() {
        for seed in 1...150 as ClosedRange<UInt64> {
            var run = FanOutRun(seed: seed)
            for step in 0..<250 {
                run.step()
                if let difference = run.difference() {
                    Issue.record("seed \(seed), step \(step): \(difference)")
                    return
                }
            }
            if let rest = run.windDown() {
                Issue.record("seed \(seed), at the end: \(rest)")
                return
            }
        }
    }
}
