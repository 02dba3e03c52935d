// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel
internal import Testing

@testable internal import Audience

private typealias Fixture = AudienceFixture

/// A log whose records Kafka compacts, and readers that begin at different places of it.
@Suite struct `A snapshot and its tail` {
    @Test(arguments: 1...40)
    func `a loaded index and its tail are what a replay of everything gives`(seed: Int) throws {
        var dice = AudienceDice(seed: UInt64(seed))
        let log = CompactedLog(dice: &dice, records: 300)
        let place = dice.below(log.records.count + 1)
        let file = try log.snapshot(at: place)
        for compactions in 0...2 {
            // The tombstones after the snapshot are younger than it.
            let kept = log.compacted(dice: &dice, times: compactions, tombstonesGoneBelow: place)
            var replayed = Fixture.audience()
            for record in kept { record.apply(to: &replayed) }
            var loaded = try file.audience()
            for record in kept where record.offset >= place { record.apply(to: &loaded) }
            loaded.checkInvariants()
            // A token that several registrations have held is as old as the latest of them that the
            // reader knows, and a replay does not know those that were compacted away.
            let lines = (loaded.dump(withTimes: false), replayed.dump(withTimes: false))
            #expect(lines.0 == lines.1)
        }
    }

    /// Why there is a greatest age: without it the test above fails.
    @Test func `a phone that was removed comes back where tombstones are gone`() throws {
        var wrong = 0
        for seed in 1...40 {
            var dice = AudienceDice(seed: UInt64(seed))
            let log = CompactedLog(dice: &dice, records: 300)
            let file = try log.snapshot(at: 100)
            let kept = log.compacted(dice: &dice, times: 1, tombstonesGoneBelow: 200)
            var replayed = Fixture.audience()
            for record in kept { record.apply(to: &replayed) }
            var loaded = try file.audience()
            for record in kept where record.offset >= 100 { record.apply(to: &loaded) }
            let lines = (loaded.dump(withTimes: false), replayed.dump(withTimes: false))
            if lines.0 != lines.1 { wrong += 1 }
        }
        #expect(wrong > 5)
    }
}

private struct CompactedLog {
    struct Record {
        let offset: Int
        let key: String
        let time: Int64
        /// Nil for a tombstone.
        let rows: [ShownRow]?
        let isSuppression: Bool

        func apply(to audience: inout Audience) {
            switch (isSuppression, rows) {
            case (true, nil): _ = audience.revokeSuppression(key)
            case (true, _): _ = audience.apply(suppressionAt: time, key)
            case (false, nil): _ = audience.changes(removing: key)
            case (false, let rows?):
                audience.apply(Fixture.registration(key, at: time, rows))
            }
            audience.reclaimRemoved()
        }
    }

    var records: [Record] = []

    init(dice: inout AudienceDice, records count: Int) {
        for offset in 0..<count {
            let isSuppression = dice.below(5) == 0
            let key =
                isSuppression ? "token-\(dice.below(30))" : "phone-\(dice.below(40))"
            var rows: [ShownRow]?
            if dice.below(3) > 0 {
                rows = (0...dice.below(3)).map { _ in
                    ShownRow(
                        "token-\(dice.below(30))", "s\(dice.below(15))",
                        kind: "kind-\(dice.below(4))", hearsChanges: dice.below(3) > 0)
                }
            }
            records.append(
                Record(
                    offset: offset, key: key, time: Int64(offset + 1000), rows: rows,
                    isSuppression: isSuppression))
        }
    }

    /// The index of a worker that had read everything below this offset.
    func snapshot(at offset: Int) throws -> SnapshotBytes {
        var audience = Fixture.audience()
        for record in records.prefix(offset) { record.apply(to: &audience) }
        return try SnapshotBytes(audience)
    }

    /// What is left after some compactions, each of the log below a random offset.
    func compacted(
        dice: inout AudienceDice, times: Int, tombstonesGoneBelow bound: Int
    ) -> [Record] {
        var left = records
        for _ in 0..<times {
            let clean = dice.below(records.count + 1)
            var last: [String: Int] = [:]
            for record in left where record.offset < clean { last[record.key] = record.offset }
            left = left.filter { record in
                guard record.offset < clean else { return true }
                guard last[record.key] == record.offset else { return false }
                return record.rows != nil || record.offset >= bound
            }
        }
        return left
    }
}
