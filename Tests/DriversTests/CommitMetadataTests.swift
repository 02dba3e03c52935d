// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// What an owner of a partition leaves for the next one beside the committed offset.
@Suite struct `Commit metadata` {
    private let group: GroupStandIn
    private var consumer: EventConsumer { group.consumer }
    private var metadata: [String?] { group.reading.assignments.map(\.metadata) }

    init() throws {
        group = try GroupStandIn()
        try group.fixture.write(9, to: "events")
        try group.fixture.write(3, to: "events", partition: 1)
    }

    /// Gives the partitions back with these positions, and gets them again.
    private func giveBack(
        _ partitions: [Int32], committing positions: [CommitPosition]
    ) async throws {
        group.announce(.revokePartitions, partitions)
        consumer.completeRevoke(commit: positions, now: .current)
        try await group.assign(partitions)
    }

    @Test func `the metadata of a committed offset comes with the next assignment`() async throws {
        let ids = try await group.assign([0, 1])
        #expect(metadata == [nil, nil])
        try await giveBack(
            [0, 1],
            committing: [
                CommitPosition(ids[0], offset: 5, metadata: "v1 8 3,4"),
                CommitPosition(ids[1], offset: 2),
            ])
        #expect(group.starts == [5, 2] && metadata == ["v1 8 3,4", nil])
        #expect(group.reading.assignments.map(\.logEnd) == [9, 3])
        group.close()
    }

    @Test func `the metadata of each partition comes as it was, however long`() async throws {
        // The library hands it out without a zero at its end, so what follows in memory matters.
        for length in [1, 7, 8, 15, 23, 24, 31, 40] {
            let texts = [length, length + 7].map { String(repeating: "7", count: $0) }
            let ids =
                length == 1
                ? try await group.assign([0, 1]) : group.reading.assignments.map(\.id)
            try await giveBack(
                [0, 1],
                committing: zip(ids, texts).map { CommitPosition($0, offset: 1, metadata: $1) })
            #expect(metadata == texts)
        }
        group.close()
    }

    @Test func `the metadata stays where the next owner has nothing to commit`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try await giveBack([0], committing: [CommitPosition(id, offset: 5, metadata: "v1 8 3")])
        try await giveBack([0], committing: [])
        #expect(group.starts == [5] && metadata == ["v1 8 3"])
        group.close()
    }

    @Test func `the metadata goes with the offset that it belongs to`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try await giveBack([0], committing: [CommitPosition(id, offset: 5, metadata: "v1 8 3")])
        let next = try #require(group.reading.assignments.first?.id)
        try await giveBack([0], committing: [CommitPosition(next, offset: 6)])
        #expect(group.starts == [6] && metadata == [nil])
        group.close()
    }

    @Test func `the metadata of an offset that retention has passed is not used`() async throws {
        let id = try #require(try await group.assign([0]).first)
        group.announce(.revokePartitions, [0])
        consumer.completeRevoke(
            commit: [CommitPosition(id, offset: 1, metadata: "v1 8 3")], now: .current)
        try group.fixture.overflowRetention(of: "events")
        try await group.assign([0])
        #expect(group.starts.allSatisfy { $0 > 1 } && metadata == [nil])
        group.close()
    }

    private var refusals: [RefusedCommit] {
        group.reading.facts.compactMap {
            if case .notCommitted(let refusal) = $0 { refusal } else { nil }
        }
    }

    // COORDINATOR_LOAD_IN_PROGRESS and REBALANCE_IN_PROGRESS on OffsetCommit.
    @Test(arguments: [14, 27])
    func `the last commit is made again when it is refused for a reason that passes`(
        code: Int32
    ) async throws {
        let id = try #require(try await group.assign([0]).first)
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: code, count: 3))
        try await giveBack([0], committing: [CommitPosition(id, offset: 5, metadata: "v1 8 3")])
        #expect(group.starts == [5] && metadata == ["v1 8 3"] && refusals.isEmpty)
        group.close()
    }

    @Test func `the last commit is made again where only its metadata is new`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try await commit(CommitPosition(id, offset: 5, metadata: "v1 8 3"))
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: 14, count: 1))
        try await giveBack([0], committing: [CommitPosition(id, offset: 5, metadata: "v1 9 3")])
        #expect(group.starts == [5] && metadata == ["v1 9 3"])
        group.close()
    }

    @Test func `the last commit that is refused for good is told, and left to the library`()
        async throws
    {
        let ids = try await group.assign([0, 1])
        // TOPIC_AUTHORIZATION_FAILED on OffsetCommit.
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: 29, count: 1))
        try await giveBack(
            [0, 1],
            committing: [
                CommitPosition(ids[0], offset: 5, metadata: "v1 8 3"),
                CommitPosition(ids[1], offset: 2, metadata: "v1 2 3"),
            ])
        // Without the metadata before librdkafka 2.1.
        #expect(group.starts == [5, 2])
        let refusal = try #require(refusals.first)
        #expect(refusals.count == 1 && refusal.partitions.map(\.partition) == [0, 1])
        #expect(refusal.cause.code == .topicAuthorizationFailed)
        group.close()
    }

    @Test func `a last commit that is refused again and again is given up`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: 27, count: 100_000))
        group.announce(.revokePartitions, [0])
        consumer.completeRevoke(
            commit: [CommitPosition(id, offset: 5, metadata: "v1 8 3")], now: .current)
        let told = consumer.takeFacts().contains {
            // On a busy machine the last try may have had no answer in time.
            if case .notCommitted = $0 { true } else { false }
        }
        #expect(told)
        group.close()
    }

    @Test func `a consumer that closes leaves its metadata to the next`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try consumer.restart(
            committing: [CommitPosition(id, offset: 5, metadata: "v1 8 3")], timeout: .seconds(5),
            now: .current)
        try await group.assign([0])
        #expect(group.starts == [5] && metadata == ["v1 8 3"])
        group.close()
    }

    // MARK: In the background

    /// Commits the position until the broker has taken it.
    private func commit(_ position: CommitPosition) async throws {
        try await waitUntil("the commit") {
            consumer.commit([position], now: .current) == 0
        }
    }

    @Test func `a commit in the background takes its metadata along`() async throws {
        let id = try #require(try await group.assign([0]).first)
        let position = CommitPosition(id, offset: 5, metadata: "v1 8 3")
        #expect(consumer.commit([position], now: .current) == 1)
        try await commit(position)
        try await giveBack([0], committing: [])
        #expect(group.starts == [5] && metadata == ["v1 8 3"])
        group.close()
    }

    @Test func `a commit is made again for other metadata, and for an offset without any`()
        async throws
    {
        let id = try #require(try await group.assign([0]).first)
        try await commit(CommitPosition(id, offset: 5))
        try await commit(CommitPosition(id, offset: 5, metadata: "v1 8 3"))
        try await commit(CommitPosition(id, offset: 5, metadata: "v1 9 3"))
        try await giveBack([0], committing: [])
        #expect(group.starts == [5] && metadata == ["v1 9 3"])
        let next = try #require(group.reading.assignments.first?.id)
        try await commit(CommitPosition(next, offset: 9))
        try await giveBack([0], committing: [])
        #expect(group.starts == [9] && metadata == [nil])
        group.close()
    }

    @Test func `a commit that is refused is made again`() async throws {
        let id = try #require(try await group.assign([0]).first)
        // TOPIC_AUTHORIZATION_FAILED on OffsetCommit.
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: 29, count: 2))
        try await commit(CommitPosition(id, offset: 5, metadata: "v1 8 3"))
        try await giveBack([0], committing: [])
        #expect(group.starts == [5] && metadata == ["v1 8 3"])
        group.close()
    }

    @Test func `a commit waits for the interval, and for the answer to the one before`()
        async throws
    {
        let id = try #require(try await group.assign([0]).first)
        var now = Now.current
        func commits(_ offset: Int64) -> Bool {
            let before = consumer.nextCommitAt
            _ = consumer.commit([CommitPosition(id, offset: offset, metadata: "x")], now: now)
            return consumer.nextCommitAt != before
        }
        #expect(commits(1) && !commits(2))
        try await waitUntil("the answer") {
            _ = commits(1)
            return consumer.commitUnderWay == nil
        }
        #expect(!commits(2))
        now.monotonic = now.monotonic + .milliseconds(100)
        #expect(commits(2))
        group.close()
    }

    @Test func `the metadata of a position of an earlier assignment is not committed`() async throws
    {
        let id = try #require(try await group.assign([0]).first)
        try await giveBack([0], committing: [])
        try await giveBack([0], committing: [CommitPosition(id, offset: 5, metadata: "v1 8 3")])
        #expect(group.starts == [0] && metadata == [nil])
        group.close()
    }
}
