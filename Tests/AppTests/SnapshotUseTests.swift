// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import Logging
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `The use of a snapshot` {
    private static let now = WallTime(milliseconds: 1_795_000_000_000)

    private static func stamp(next: Int64 = 1_000_000, age: Duration = .seconds(3600))
        -> SnapshotStamp
    {
        SnapshotStamp(
            cluster: "a-cluster",
            tables: [
                SnapshotStamp.Table(
                    topic: "registrations", partitions: [TablePosition(next: next, last: nil)])
            ], asOf: now + (.zero - age), routing: StableHash.Value(high: 1, low: 2),
            tombstonesLast: .seconds(7200))
    }

    private static func use() -> SnapshotUse {
        let logger = Logger(label: "snapshots") { _ in SwiftLogNoOpLogHandler() }
        let conditions = SnapshotConditions(
            cluster: "a-cluster",
            topics: [
                SnapshotTopic(
                    name: "registrations", logs: [0..<9], tombstonesLast: .seconds(172_800),
                    hasBrokerTimes: true)
            ], routing: StableHash.Value(high: 1, low: 2), now: now)
        var use = SnapshotUse(
            store: SnapshotStore(directory: "/nonexistent", logger: logger), conditions)
        use.began(with: stamp(), at: now)
        return use
    }

    @Test
    func `what was written since is to be read within three quarters of the tombstones' life`() {
        let use = Self.use()
        #expect(use.age == .seconds(3600))
        // Of the two hours for which they lasted when it was written.
        #expect(use.lateness(newest: nil, now: Self.now + .seconds(1799)) == nil)
        #expect(use.lateness(newest: nil, now: Self.now + .seconds(1800)) != nil)
        #expect(use.lateness(newest: Self.now + .seconds(1800), now: Self.now) != nil)
    }

    @Test func `once it has been read, no time makes the index wrong`() {
        var use = Self.use()
        use.tailWasRead()
        #expect(use.lateness(newest: nil, now: Self.now + .seconds(1_000_000)) == nil)
    }

    @Test func `a newer file is not replaced by an older one`() {
        let other = Self.stamp()
        #expect(SnapshotUse.isWorthless(Self.stamp(next: 900_000), after: other))
        #expect(SnapshotUse.isWorthless(Self.stamp(next: 1_100_000), after: other))
        #expect(!SnapshotUse.isWorthless(Self.stamp(next: 1_100_001), after: other))
        #expect(!SnapshotUse.isWorthless(Self.stamp(age: .zero), after: other))
        #expect(!SnapshotUse.isWorthless(Self.stamp(), after: nil))
    }
}
