// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import KafkaLog
internal import Logging
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `The planner and restrictions` {
    private static let app = Restriction.Scope.pushes(app: "com.example.Home", tokenClass: nil)

    @Test(arguments: [
        ("anna", "by an operator", "until=resumed"),
        (
            ConfiguredRestriction.by, "by the configuration",
            "until=taken out of planning.restrictions"
        ),
    ])
    func `the log says who has restricted something, and what ends it`(
        author: String, who: String, until: String
    ) {
        let lines = LogLines()
        let logger = Logger(label: "planner") { _ in LineHandler(lines: lines) }
        var seen = SeenRestrictions()
        seen.tell(
            [Self.app: Restriction(.pause, by: author, at: WallTime(milliseconds: 0))],
            logger: logger)
        let told = lines.taken()
        #expect(told.count == 1 && told[0].hasPrefix("notice restricted \(who) ["), "\(told)")
        #expect(told[0].contains("\(until), ") && told[0].contains("by=\(author), "), "\(told)")
    }

    /// Kafka may not have said at the start, or the number may have grown.
    @Test func `the planner asks for the number of partitions when it gets some`() async throws {
        let planner = try PlannerLoopFixture()
        let before = planner.loop.plan.consumedPartitions
        #expect(before == nil)
        planner.take(
            .assigned([
                Assignment(
                    AssignmentID(ordinal: 0, epoch: 1), topic: 0, partition: 0, startOffset: 0,
                    reason: .committed, skipped: 0)
            ]))
        let patience = Patience()
        var now = planner.now
        while planner.loop.plan.consumedPartitions == nil, !patience.isOver {
            // On a busy machine the first answer may not be in time.
            if !planner.loop.readers.counting.isUnderWay {
                now.monotonic = now.monotonic + PartitionCount.retryAfter
            }
            planner.loop.followRestrictions(now: now)
            try await Task.sleep(for: .milliseconds(20))
        }
        let count = planner.loop.plan.consumedPartitions
        #expect(count == planner.loop.plan.consumedTopics.count)
        let produced = planner.loop.plan.producedPartitions
        #expect(produced.count == planner.loop.plan.producedTopics.count)
    }

    @Test func `the planner asks again after a while where Kafka did not say`() throws {
        let planner = try PlannerLoopFixture()
        var now = planner.now
        planner.loop.readers.counting.failed(now: now)
        now.monotonic = now.monotonic + PartitionCount.retryAfter - .seconds(1)
        planner.loop.followRestrictions(now: now)
        let isAskedEarly = planner.loop.readers.counting.isUnderWay
        now.monotonic = now.monotonic + .seconds(1)
        planner.loop.followRestrictions(now: now)
        let isAsked = planner.loop.readers.counting.isUnderWay
        #expect(!isAskedEarly && isAsked)
    }
}
