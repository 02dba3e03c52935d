// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

/// A table of deferred pushes with the tracker whose claims it keeps.
private struct DeferralBench: ~Copyable {
    var tracker = OffsetTracker(registrationGrace: .zero)
    var table = DeferredTable(routes: 2, seed: 5)
    let assignment = AssignmentID(ordinal: 0, epoch: 1)
    private var offset: Int64 = 0

    init() { tracker.openTable(assignment, partition: 0) }

    func content(dueIn seconds: Int = 0, expiresIn life: Int = 600) -> DeferredContent {
        var push = PushContent(
            type: .controls, priority: 10, expiration: .immediate,
            expiresAt: .after(.seconds(life)), origin: nil, readSequence: 1, subject: .none,
            subjectTag: 0)
        push.notBefore = .after(.seconds(seconds))
        return DeferredContent(push, past: PushRequest.Past(attempts: 0, firstTriedAt: nil))
    }

    mutating func insert(
        _ token: UInt8, route: UInt16 = 0, dueIn seconds: Int = 0, isActive: Bool = true
    ) -> UInt32 {
        offset += 1
        let content = content(dueIn: seconds)
        let row = [token].withUnsafeBytes { bytes in
            table.insert(
                content,
                of: DeferredTable.Key(
                    route: RouteID(rawValue: route), token: bytes, coalescingKey: 0),
                at: place(isActive: isActive), &tracker)
        }
        checkInvariants()
        return row
    }

    mutating func replace(_ row: UInt32, expiresIn life: Int = 600) -> Bool {
        offset += 1
        let needsRewrite = table.replace(
            row, with: content(expiresIn: life), at: place(isActive: true), isRewrite: false,
            &tracker)
        checkInvariants()
        return needsRewrite
    }

    private func place(isActive: Bool) -> DeferredTable.Place {
        DeferredTable.Place(
            assignment, partition: 0, offset: offset, saidAt: offset, isActive: isActive)
    }

    func firstReady(route: UInt16 = 0) -> UInt32? { table.firstReady(of: RouteID(rawValue: route)) }

    func checkInvariants() {
        table.checkInvariants()
        tracker.checkInvariants()
    }
}

@Suite struct `The table of deferred pushes` {
    @Test func `the deferred table has a row wait for its time, then in its route's queue`() {
        var bench = DeferralBench()
        let late = bench.insert(1, dueIn: 2)
        let soon = bench.insert(2, dueIn: 1)
        let other = bench.insert(3, route: 1, dueIn: 1)
        bench.table.wake(now: .after(.seconds(1)), limit: 100)
        let first = [bench.firstReady(), bench.firstReady(route: 1)]
        #expect(first == [soon, other])
        bench.table.take(soon)
        bench.table.wake(now: .after(.seconds(2)), limit: 100)
        let next = bench.firstReady()
        #expect(next == late)
        bench.checkInvariants()
    }

    @Test func `the deferred table offers a row that was queued before once, behind the others`() {
        var bench = DeferralBench()
        let rows = [
            bench.insert(1, dueIn: 1), bench.insert(2, dueIn: 2), bench.insert(3, dueIn: 3),
        ]
        bench.table.wake(now: .after(.seconds(3)), limit: 100)
        // It is announced, and then not sent after all.
        bench.table.announce(rows[0], until: .after(.seconds(9)), now: .after(.seconds(3)))
        bench.table.withdraw(rows[0])
        var offered: [UInt32] = []
        while let row = bench.firstReady(), offered.count < 9 {
            offered.append(row)
            bench.table.take(row)
            bench.checkInvariants()
        }
        #expect(offered == [rows[1], rows[2], rows[0]])
    }

    @Test func `the deferred table leaves rows alone until their partition is read to its end`() {
        var bench = DeferralBench()
        let row = bench.insert(1, isActive: false)
        bench.table.wake(now: .after(.seconds(60)), limit: 100)
        let early = bench.firstReady()
        bench.table.activate(bench.assignment) { _ in }
        bench.table.wake(now: .after(.seconds(60)), limit: 100)
        let ready = bench.firstReady()
        #expect(early == nil && ready == row)
    }

    @Test func `the deferred table gives a dropped row's claim back, and the row has ended`() {
        var bench = DeferralBench()
        let row = bench.insert(1)
        let claim = bench.table.claim(of: row)
        bench.table.drop(row, &bench.tracker)
        let ended = bench.tracker.takeEndedRows()
        #expect(ended == [claim])
        bench.table.remove(row)
        bench.checkInvariants()
        let claims = bench.tracker.claimCount
        #expect(claims == 0)
    }

    @Test func `claims its offset again for a record that comes while a push has the claim`() {
        var bench = DeferralBench()
        let row = bench.insert(1)
        let claim = bench.table.claim(of: row)
        bench.table.take(row)
        _ = bench.replace(row)
        bench.tracker.release(claim)
        let afterPush = bench.tracker.endedRows.count
        bench.table.drop(row, &bench.tracker)
        let afterRow = bench.tracker.endedRows.count
        #expect(afterPush == 0 && afterRow == 1)
    }

    @Test func `the deferred table has a record that promises less than is owed written again`() {
        var bench = DeferralBench()
        let row = bench.insert(1)
        let narrower = bench.replace(row, expiresIn: 60)
        let wider = bench.replace(row, expiresIn: 6000)
        #expect(narrower && !wider)
        let expiresAt = bench.table.content(of: row).push.expiresAt
        #expect(expiresAt == .after(.seconds(6000)))
    }

    @Test func `the deferred table forgets a row whose tombstone was read, and writes none`() {
        var bench = DeferralBench()
        let row = bench.insert(1)
        bench.table.forget(row, &bench.tracker)
        bench.checkInvariants()
        let left = (bench.table.count, bench.tracker.endedRows.count, bench.tracker.claimCount)
        #expect(left == (0, 0, 0))
    }

    @Test func `the deferred table gives a lost partition's claims back, but for those of pushes`()
    {
        var bench = DeferralBench()
        let taken = bench.insert(1)
        _ = bench.insert(2)
        let claim = bench.table.claim(of: taken)
        bench.table.take(taken)
        bench.table.close([bench.assignment], &bench.tracker)
        bench.tracker.close(bench.assignment)
        bench.checkInvariants()
        let claims = bench.tracker.claimCount
        #expect(claims == 1)
        bench.tracker.release(claim)
        let none = bench.tracker.claimCount
        #expect(none == 0)
    }

    @Test func `the deferred table gives several partitions up at once, and keeps the others`() {
        var bench = DeferralBench()
        _ = bench.insert(1)
        let others = (2...3).map { AssignmentID(ordinal: UInt32($0), epoch: UInt32($0) * 10) }
        for (partition, id) in others.enumerated() {
            bench.tracker.openTable(id, partition: Int32(partition + 1))
        }
        bench.table.close(others, &bench.tracker)
        let kept = bench.table.count
        bench.table.close([bench.assignment, others[0]], &bench.tracker)
        bench.checkInvariants()
        let left = bench.table.count
        #expect(kept == 1 && left == 0)
    }
}

@Suite struct `The order of payloads` {
    /// Of a payload that was read here, as the n-th.
    private func age(_ n: UInt64) -> BodyAge {
        .here(WallTime(milliseconds: Int64(n)), sequence: n)
    }

    private let now = MonotonicTime.after(.zero)

    @Test func `the payload order ends an older deferred payload when a newer one is accepted`() {
        for (accepted, ends) in [(2, true), (1, true), (0, false)] as [(UInt64, Bool)] {
            var order = PayloadOrder(bytesMax: 1 << 20)
            order.deferred(7, age: age(1), expiresAt: .after(.seconds(60)), now: now)
            let isEnded = order.accepted(7, age: age(accepted), keptUntil: nil, now: now)
            order.checkInvariants()
            #expect(isEnded == ends)
        }
    }

    @Test func `the payload order knows what was accepted only as long as an older one may come`() {
        var order = PayloadOrder(bytesMax: 1 << 20)
        _ = order.accepted(7, age: age(5), keptUntil: .after(.seconds(60)), now: now)
        let outdated = ([4, 5, 6] as [UInt64]).map { order.isOutdated(7, age: age($0)) }
        #expect(outdated == [true, false, false])
        order.forget(now: .after(.seconds(60)))
        order.checkInvariants()
        let isEmpty = order.isEmpty
        #expect(isEmpty)
    }

    @Test func `the payload order never calls a payload outdated for one that another worker read`()
    {
        var order = PayloadOrder(bytesMax: 1 << 20)
        let faster = BodyAge.elsewhere(WallTime(milliseconds: 1000), knownSince: 9)
        _ = order.accepted(7, age: faster, keptUntil: .after(.seconds(60)), now: now)
        let isOutdated = order.isOutdated(7, age: age(4))
        #expect(!isOutdated)
        // What another worker deferred before is.
        let isSuperseded = order.isSuperseded(
            7, age: .elsewhere(WallTime(milliseconds: 999), knownSince: 3))
        #expect(isSuperseded)
    }

    @Test func `what was accepted ends older records also after a newer payload was deferred`() {
        var order = PayloadOrder(bytesMax: 1 << 20)
        order.deferred(7, age: age(1), expiresAt: .after(.seconds(60)), now: now)
        _ = order.accepted(7, age: age(2), keptUntil: nil, now: now)
        order.deferred(7, age: age(3), expiresAt: .after(.seconds(60)), now: now)
        let isOutdated = ([1, 3] as [UInt64]).map { order.isOutdated(7, age: age($0)) }
        // Records of the two come from Kafka: the first was under way all the time.
        let isSuperseded = ([1, 3] as [UInt64]).map {
            order.isSuperseded(7, age: .elsewhere(age($0).readAt, knownSince: 9))
        }
        #expect(isOutdated == [true, false] && isSuperseded == [true, false])
    }

    @Test func `an older payload that a faster clock has dated later ends no newer deferral`() {
        var order = PayloadOrder(bytesMax: 1 << 20)
        let faster = BodyAge.elsewhere(WallTime(milliseconds: 1000), knownSince: 9)
        _ = order.accepted(7, age: faster, keptUntil: .after(.seconds(60)), now: now)
        order.deferred(7, age: age(10), expiresAt: .after(.seconds(60)), now: now)
        let isSuperseded = order.isSuperseded(
            7, age: .elsewhere(age(10).readAt, knownSince: 11))
        #expect(!isSuperseded)
    }

    @Test func `the payload order forgets the oldest key where there is no room`() {
        var order = PayloadOrder(bytesMax: 2 * PayloadOrder.bytesPerKey)
        for hash in 1...3 as ClosedRange<UInt64> {
            _ = order.accepted(hash, age: age(5), keptUntil: .after(.seconds(60)), now: now)
            order.checkInvariants()
        }
        let known = ([1, 2, 3] as [UInt64]).map { order.isOutdated($0, age: age(4)) }
        let forgotten = order.forgotten
        #expect(known == [false, true, true] && forgotten == 1)
    }
}

@Suite struct `Tombstones that wait for room` {
    private func end(_ key: UInt8, bytes: Int = 1) -> PayloadEnds.End {
        PayloadEnds.End(
            key: Array(repeating: key, count: bytes), acceptedReadAt: WallTime(milliseconds: 0))
    }

    @Test func `tombstones that wait for room go out in their order`() {
        var ends = PayloadEnds(bytesMax: 1 << 20)
        for key in 0..<200 as Range<UInt8> { ends.append(end(key)) }
        ends.checkInvariants()
        var keys: [UInt8] = []
        while let next = ends.popFirst() { keys += next.key }
        ends.checkInvariants()
        #expect(keys == Array(0..<200) && ends.isEmpty && ends.bytes == 0)
    }

    @Test func `tombstones that wait for room are dropped and counted where they fill their bytes`()
    {
        var ends = PayloadEnds(bytesMax: 1000)
        for key in 0..<4 as Range<UInt8> { ends.append(end(key, bytes: 300)) }
        ends.checkInvariants()
        #expect(ends.count == 2 && ends.dropped == 2)
    }
}
