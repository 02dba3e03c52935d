// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The claims of a waiting push` {
    @Test func `the claims of a waiting push are one for each partition, and all come back`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        var pool = ClaimPool()
        var set = ClaimSet()
        #expect(set.isEmpty)
        var kept: Set<OffsetClaim> = []
        for ordinal in 0..<12 as Range<UInt32> {
            let assignment = ledger.open(ordinal, startOffset: 0)
            let oldest = ledger.read(assignment, 0)
            let newer = ledger.read(assignment, 1)
            _ = pool.insert(oldest, into: &set)
            _ = pool.insert(newer, into: &set)
            kept.insert(oldest)
        }
        #expect(pool.chained == 11)
        var listed: [OffsetClaim] = []
        pool.forEach(in: set) { listed.append($0) }
        #expect(listed.count == 12)
        #expect(Set(listed) == kept)
        var drained: [OffsetClaim] = []
        pool.drain(&set) { drained.append($0) }
        #expect(Set(drained) == kept)
        #expect(drained.count == 12)
        #expect(set.isEmpty)
        #expect(pool.chained == 0)
    }

    @Test func `the claims of a waiting push do not mix between sets that share a pool`() {
        var ledger = OffsetTracker(registrationGrace: .zero)
        var pool = ClaimPool()
        var sets = [ClaimSet](repeating: ClaimSet(), count: 8)
        var expected = [[OffsetClaim]](repeating: [], count: 8)
        let assignments = (0..<5).map { ledger.open($0, startOffset: 0) }
        for round in 0..<50 {
            for index in sets.indices {
                let assignment = assignments[(round + index) % 5]
                let claim = ledger.read(assignment, ledger.nextOffset(assignment))
                _ = pool.insert(claim, into: &sets[index])
                if !expected[index].contains(where: { $0.epoch == assignment.epoch }) {
                    expected[index].append(claim)
                }
            }
            let emptied = round % 8
            var drained: [OffsetClaim] = []
            pool.drain(&sets[emptied]) { drained.append($0) }
            #expect(Set(drained) == Set(expected[emptied]), "round \(round)")
            #expect(drained.count == expected[emptied].count, "round \(round)")
            expected[emptied] = []
        }
        let chained = expected.reduce(0) { $0 + max(0, $1.count - 1) }
        #expect(pool.chained == chained)
    }
}

/// An event with a large audience comes to a token long after it was read; other events of the same
/// partition, read later, may have come to it before.
@Suite struct `A late claim on an older offset` {
    @Test func `a late claim on an older offset is kept by a push that is queued`() {
        var bench = PlanningBench()
        let slow = bench.read()
        let quick = bench.read()
        let slot = bench.queue(bench.request(quick), quick)
        _ = bench.join(slot, bench.request(slow), slow)
        let held = bench.committableOffset()
        #expect(held == 0)
        #expect(bench.ledger.claimCount == 1)
    }

    @Test func `a late claim on an older offset is kept by a push that holds other partitions too`()
    {
        var bench = PlanningBench()
        let slow = bench.read(partition: 1)
        let other = bench.read(partition: 0)
        let quick = bench.read(partition: 1)
        let slot = bench.queue(bench.request(other), other)
        _ = bench.join(slot, bench.request(quick), quick)
        _ = bench.join(slot, bench.request(slow), slow)
        let held = [bench.committableOffset(partition: 0), bench.committableOffset(partition: 1)]
        #expect(held == [0, 0])
        #expect(bench.ledger.claimCount == 2)
    }

    @Test func `a late claim on an older offset is kept by a push in flight`() {
        var bench = PlanningBench()
        let slow = bench.read()
        let quick = bench.read()
        let slot = bench.queue(bench.request(quick), quick)
        _ = bench.take()
        _ = bench.join(slot, bench.request(slow), slow)
        let held = bench.committableOffset()
        #expect(held == 0)
    }

    @Test func `a late claim on an older offset is kept when a retry takes in the follow-up`() {
        var bench = PlanningBench()
        let slow = bench.read()
        let quick = bench.read()
        let slot = bench.queue(bench.request(quick), quick)
        _ = bench.take()
        // A fan-out that a later event has joined: its oldest claim, and the count of its newest event.
        let later = bench.read()
        var request = bench.request(slow)
        request.content.readSequence = later.sequence
        _ = bench.join(slot, request, slow)
        bench.ledger.release(later.claim)
        bench.retry(slot)
        let held = bench.committableOffset()
        #expect(held == 0)
        #expect(bench.ledger.claimCount == 1)
    }
}

/// A row of a table ends by itself, whatever its offset is: a token may have two in one assignment, one of
/// them forgotten, or ended by another worker.
@Suite struct `Rows that one push answers for` {
    @Test(arguments: [[5, 14], [14, 5], [5, 14, 9]], [false, true])
    func `rows that one push answers for end with it, and none before`(
        offsets: [Int64], isFollowUp: Bool
    ) {
        var bench = PlanningBench()
        let table = AssignmentID(ordinal: 7, epoch: 99)
        bench.ledger.openTable(table, partition: 3)
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        if isFollowUp { _ = bench.take() }
        for offset in offsets {
            let row = bench.ledger.claimRow(table, offset: offset)
            _ = bench.table.join(slot, bench.request(bench.read()), claim: row, &bench.ledger)
            let early = bench.ledger.takeEndedRows()
            #expect(early.isEmpty)
        }
        if isFollowUp {
            _ = bench.accept(slot)
            let early = bench.ledger.takeEndedRows()
            #expect(early.isEmpty)
        }
        let taken = bench.take()
        #expect(taken == slot)
        _ = bench.accept(slot)
        let ended = bench.ledger.takeEndedRows().map(\.offset)
        #expect(ended.sorted() == offsets.sorted())
    }
}
