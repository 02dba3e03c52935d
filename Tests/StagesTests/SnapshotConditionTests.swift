// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Audience

@Suite struct `The conditions of a snapshot of the index` {
    private static let now = WallTime(milliseconds: 1_795_000_000_000)

    private static func conditions(
        _ change: (inout SnapshotConditions) -> Void = { _ in }
    ) -> SnapshotConditions {
        var conditions = SnapshotConditions(
            cluster: "a-cluster",
            topics: [
                SnapshotTopic(
                    name: "registrations", logs: [0..<12, 0..<0], tombstonesLast: .seconds(7200),
                    hasBrokerTimes: true),
                SnapshotTopic(
                    name: "suppressions", logs: [5..<9], tombstonesLast: .seconds(86_400),
                    hasBrokerTimes: false),
            ],
            routing: SnapshotBytes.fingerprint([]), now: now)
        change(&conditions)
        return conditions
    }

    private func refusal(
        _ conditions: (inout SnapshotConditions) -> Void = { _ in },
        stamp change: (inout SnapshotStamp) -> Void = { _ in }
    ) -> String? {
        var stamp = SnapshotBytes.stamp
        stamp.asOf = Self.now + .seconds(-600)
        change(&stamp)
        return Self.conditions(conditions).refusal(of: stamp)
    }

    private func doubt(
        _ conditions: (inout SnapshotConditions) -> Void = { _ in }, age: Duration = .seconds(600)
    ) -> String? {
        var stamp = SnapshotBytes.stamp
        stamp.asOf = Self.now + (.zero - age)
        return Self.conditions(conditions).doubt(of: stamp)
    }

    @Test func `a young snapshot of the same logs may be used`() {
        #expect(refusal() == nil)
        #expect(doubt() == nil && doubt({ $0.topics[0].hasBrokerTimes = nil }) == nil)
        // Its last record is the first that there is.
        #expect(refusal({ $0.topics[0].logs[0] = 10..<12 }) == nil)
        #expect(refusal({ $0.topics[1].logs[0] = 7..<7 }) == nil)
    }

    @Test func `a snapshot may be half as old as the shortest life of tombstones`() {
        #expect(refusal(stamp: { $0.asOf = Self.now + .seconds(-3599) }) == nil)
        #expect(
            refusal(stamp: { $0.asOf = Self.now + .seconds(-3600) })
                == "it is 3600 s old, and may be 3600 s: half of delete.retention.ms")
        #expect(
            refusal({ $0.topics[1].tombstonesLast = .seconds(1000) })
                == "it is 600 s old, and may be 500 s: half of delete.retention.ms")
        #expect(doubt({ $0.topics[1].tombstonesLast = nil })?.contains("DESCRIBE_CONFIGS") == true)
    }

    @Test func `that tombstones last longer now brings back none that was removed before`() {
        let longer = { (conditions: inout SnapshotConditions) in
            for topic in conditions.topics.indices {
                conditions.topics[topic].tombstonesLast = .seconds(172_800)
            }
        }
        #expect(refusal(longer, stamp: { $0.asOf = Self.now + .seconds(-3599) }) == nil)
        #expect(
            refusal(longer, stamp: { $0.asOf = Self.now + .seconds(-3600) })
                == "it is 3600 s old, and may be 3600 s: half of delete.retention.ms")
        #expect(refusal(stamp: { $0.tombstonesLast = nil })?.contains("was not known") == true)
    }

    @Test func `a clock that is behind the brokers' makes nothing young`() {
        #expect(doubt(age: .seconds(-300)) == nil)
        #expect(
            doubt(age: .seconds(-301))
                == "it is from the future: this machine's clock is 301 s behind the brokers'")
    }

    @Test func `what is not of this cluster, these topics or this routing is not used`() {
        #expect(refusal({ $0.cluster = "another" }) == "it is of another Kafka cluster")
        #expect(doubt({ $0.cluster = nil })?.contains("cannot be compared") == true)
        #expect(refusal({ $0.topics[0].name = "other" }) == "it is of other topics")
        #expect(refusal({ $0.topics.swapAt(0, 1) }) == "it is of other topics")
        #expect(refusal({ $0.topics.removeLast() }) == "it is of other topics")
        #expect(
            refusal({ $0.routing = SnapshotBytes.fingerprint(.kindWide) })?.contains("other apps")
                == true
        )
    }

    @Test func `a log that is not where the snapshot ends is not read on`() {
        #expect(
            refusal({ $0.topics[0].logs[0] = 0..<11 })
                == "registrations ends before it in partition 0")
        #expect(
            refusal({ $0.topics[1].logs[0] = 8..<9 })
                == "suppressions has lost records after it in partition 0")
        // Reading begins with the last record that was read.
        #expect(
            refusal({ $0.topics[0].logs[0] = 11..<12 })
                == "registrations has lost records after it in partition 0")
        #expect(
            refusal({ $0.topics[0].logs.append(0..<1) })
                == "registrations has 3 partitions, and had 2")
        #expect(
            doubt({ $0.topics[0].hasBrokerTimes = false })
                == "the times in registrations are its producers', so nobody knows how old it is")
    }

    @Test func `reading what came after may take until three quarters of the tombstones' life`() {
        #expect(SnapshotConditions.endOfReading(tombstonesLast: .seconds(7200)) == .seconds(5400))
        #expect(Self.conditions().tombstonesLast == .seconds(7200))
    }
}
