// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import EmbeddedKafka
internal import FleetKit
internal import Intake
internal import KafkaLog
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import Testing

@testable internal import Lifecycle
@testable internal import Worker

/// What the planner hears from its clients reaches `WorkerLifecycle`, and what that says is done.
@Suite struct `The planner` {
    private static let error = RdkafkaError(.failed, message: "it is broken")

    @Test func `the planner ends when its consumer has failed for good`() throws {
        let planner = try PlannerLoopFixture()
        planner.take(.fatal(Self.error))
        #expect(planner.failure?.contains("consumer has failed for good") == true)
    }

    @Test func `the planner ends when its producer has failed for good`() async throws {
        // CLUSTER_AUTHORIZATION_FAILED on InitProducerId.
        let planner = try PlannerLoopFixture {
            try $0.perform(.fail(apiKey: 22, code: 31, count: 99))
        }
        try await waitUntil("the producer's end") {
            planner.producer.poll(now: planner.now) { _, _ in }
            return planner.producer.fatalError != nil
        }
        planner.loop.watchOver(now: planner.now)
        #expect(planner.failure?.contains("producer has failed for good") == true)
    }

    @Test func `the planner ends when its tables cannot be followed`() async throws {
        // OFFSET_OUT_OF_RANGE on Fetch.
        let planner = try PlannerLoopFixture {
            try $0.perform(.fail(apiKey: 1, code: 1, count: 99))
        }
        try await waitUntil("the table's end") {
            _ = planner.tables.poll(now: planner.now, limit: 10) { _ in }
            return planner.tables.failure != nil
        }
        planner.loop.watchOver(now: planner.now)
        #expect(planner.failure?.contains("cannot read the topic of registrations") == true)
    }

    @Test func `the planner opens a consumer again that asks for it, or whose name was given away`()
        throws
    {
        let planner = try PlannerLoopFixture()
        #expect(!planner.loop.lifecycle.restarts.isAwaited)
        planner.take(.restartNeeded(Self.error))
        #expect(planner.loop.lifecycle.restarts.isAwaited)

        let fenced = try PlannerLoopFixture()
        for count in 1...2 {
            fenced.take(.fatal(RdkafkaError(.fencedInstanceID)))
            #expect(fenced.loop.lifecycle.restarts.isAwaited && fenced.failure == nil, "\(count)")
        }
        fenced.take(.fatal(RdkafkaError(.fencedInstanceID)))
        #expect(fenced.failure?.contains("kafka.groupInstanceID") == true)
    }

    @Test func `the planner knows the partitions of an assignment apart until they are gone`()
        throws
    {
        let planner = try PlannerLoopFixture()
        let deferred = planner.loop.plan.deferredConsumed
        let ids = (1...2).map { AssignmentID(ordinal: $0, epoch: $0) }
        planner.take(
            .assigned([
                Assignment(
                    ids[0], topic: 0, partition: 0, startOffset: 5, reason: .committed, skipped: 0),
                Assignment(
                    ids[1], topic: deferred, partition: 0, startOffset: 0, reason: .beginning,
                    skipped: 0),
            ]))
        #expect(planner.loop.lifecycle.open.events == [ids[0]])
        #expect(planner.loop.lifecycle.open.deferred == [ids[1]])
        let positions = planner.loop.positions(of: ids, now: planner.now)
        #expect(positions == [CommitPosition(ids[0], offset: 5)])
        planner.take(.revoking([ids[0]]))
        #expect(planner.loop.lifecycle.draining == [ids[0]])
        planner.take(.lost(ids))
        #expect(planner.loop.lifecycle.open.events == [] && planner.loop.lifecycle.draining == [])
        let left = planner.loop.positions(of: ids, now: planner.now)
        #expect(left == [])
    }

    @Test(arguments: [
        (logEnd: 9 as Int64, cluster: nil as String?, isUsed: true), (8, nil, false),
        (9, "another", false),
    ])
    func `the planner uses what the owner before has left of this cluster's log`(
        logEnd: Int64, cluster: String?, isUsed: Bool
    ) throws {
        let planner = try PlannerLoopFixture()
        let id = AssignmentID(ordinal: 0, epoch: 1)
        let said = planner.loop.readers.cluster
        let own = try #require(said)
        planner.take(
            .assigned([
                Assignment(
                    id, topic: 0, partition: 0, startOffset: 5, reason: .committed, skipped: 0,
                    metadata: "v1 \(cluster ?? own) 9 3,4", logEnd: logEnd)
            ]))
        let left = planner.loop.notedPositions(of: [id], now: planner.now)
        #expect(
            left == [
                CommitPosition(id, offset: 5, metadata: isUsed ? "v1 \(own) 9 3,4" : nil)
            ])
    }

    @Test
    func
        `the planner waits for its last records to be acknowledged before it stores what they held`()
        throws
    {
        let planner = try PlannerLoopFixture()
        let id = AssignmentID(ordinal: 0, epoch: 1)
        planner.take(
            .assigned([
                Assignment(
                    id, topic: 0, partition: 0, startOffset: 0, reason: .committed, skipped: 0)
            ]))
        Array("not JSON".utf8).withUnsafeBytes { value in
            planner.loop.pipeline.eventRecord(
                EventRecord(
                    binding: 0, key: nil, value: value,
                    timestamp: WallTime(milliseconds: planner.now.wall.milliseconds)),
                of: id, now: planner.now
            ) { _ in nil }
        }
        planner.loop.produceRecords(now: planner.now)
        #expect(planner.loop.pipeline.load.unacknowledged == 1)
        let end = planner.loop.close(.stopped)
        #expect(end == .stopped && planner.loop.pipeline.load.unacknowledged == 0)
        #expect(planner.control.currentPhase == .stopped)
        #expect(planner.port.currentPhase == .stopping)
    }

    @Test func `the planner stops when it is asked to, and its delivery with it`() throws {
        let planner = try PlannerLoopFixture()
        planner.control.requestStop()
        planner.loop.advanceLifecycle(now: planner.now)
        #expect(planner.control.currentPhase == .draining)
        #expect(planner.port.currentPhase == .draining && planner.loop.lifecycle.end == nil)
        planner.port.markExited()
        planner.loop.advanceLifecycle(now: planner.now)
        #expect(planner.loop.lifecycle.end == .stopped)
    }
}
