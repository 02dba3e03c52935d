// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog

@Suite struct `Start of a partition` {
    static let evidence = StartEvidence(
        committed: nil, low: 10, high: 100, isNewTopic: true, atTime: 60)

    @Test(arguments: [
        (StartFrom.earliest, Int64(10)), (.latest, 100), (.ago(.seconds(60)), 60),
    ])
    func `a new topic begins where the configuration says, and what that skips is known`(
        from: StartFrom, offset: Int64
    ) {
        let decision = StartRule.decide(Self.evidence, startFrom: from)
        #expect(
            decision
                == .init(offset: offset, commits: true, reason: .startFrom, skipped: offset - 10))
    }

    @Test func `when no record is young enough the start is the end`() {
        var evidence = Self.evidence
        evidence.atTime = nil
        let decision = StartRule.decide(evidence, startFrom: .ago(.seconds(60)))
        #expect(decision == .init(offset: 100, commits: true, reason: .startFrom, skipped: 90))
    }

    @Test(arguments: [StartFrom.earliest, .latest, .ago(.seconds(60))])
    func `a partition that was added begins at its beginning`(from: StartFrom) {
        var evidence = Self.evidence
        evidence.isNewTopic = false
        #expect(StartRule.decide(evidence, startFrom: from) == .init(offset: 10, commits: true))
    }

    @Test(arguments: [
        (Int64(9), StartRule.Decision(offset: 10, loss: .retention, commits: true)),
        (10, .init(offset: 10, commits: false, reason: .committed)),
        (55, .init(offset: 55, commits: false, reason: .committed)),
        (100, .init(offset: 100, commits: false, reason: .committed)),
        (101, .init(offset: 10, loss: .truncation, commits: true)),
    ])
    func `a committed offset is used as long as the log has it`(
        committed: Int64, decision: StartRule.Decision
    ) {
        var evidence = Self.evidence
        evidence.committed = committed
        evidence.isNewTopic = false
        #expect(StartRule.decide(evidence, startFrom: .latest) == decision)
    }

    @Test func `two members that open a topic at its end read nothing old and miss nothing new`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 4])
        for partition in Int32(0)..<4 {
            try fixture.write(20, to: "events", partition: partition)
        }
        let readings = [
            Reading(try fixture.consumer(["events"], startFrom: .latest)),
            Reading(try fixture.consumer(["events"], startFrom: .latest)),
        ]
        try await waitUntil("all partitions") {
            for reading in readings { reading.turn() }
            return readings.reduce(0) { $0 + $1.assignments.count } == 4
        }
        for reading in readings {
            #expect(reading.assignments.allSatisfy { $0.startOffset == 20 })
            reading.close()
        }
        // The start was committed before anything was read: what comes meanwhile is owed.
        for partition in Int32(0)..<4 {
            try fixture.write(1, from: 20, to: "events", partition: partition)
        }
        let next = Reading(try fixture.consumer(["events"], startFrom: .latest))
        try await next.waitForRecords(4)
        #expect(next.records.allSatisfy { $0.offset == 20 })
        next.close()
    }

    @Test func `an hour ago is the beginning where times cannot be looked up`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        let reading = Reading(try fixture.consumer(["events"], startFrom: .ago(.seconds(3600))))
        try await reading.waitForRecords(5)
        reading.close()
    }

    @Test func `records that retention removed unread are counted`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let first = Reading(try fixture.consumer(["events"]))
        try await first.waitForAssignment()
        first.close()
        try fixture.overflowRetention(of: "events")
        let second = Reading(try fixture.consumer(["events"]))
        try await second.waitForRecords(1)
        let start = try #require(second.assignments.first).startOffset
        #expect(start > 0)
        #expect(
            second.losses == [
                OffsetLoss(
                    topic: 0, partition: 0, cause: .retention, committed: 0, startOffset: start)
            ])
        #expect(second.losses.first?.offsetsMax == start)
        #expect(second.records.first?.offset == start)
        second.close()
    }

    @Test func `a log that ends before the committed offset is read from its beginning`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForRecords(5)
        let id = try #require(reading.assignments.first).id
        let beyond = CommitPosition(id, offset: 1000)
        try reading.consumer.restart(committing: [beyond], timeout: .seconds(5), now: .current)
        try await reading.waitForRecords(10)
        #expect(
            reading.losses == [
                OffsetLoss(
                    topic: 0, partition: 0, cause: .truncation, committed: 1000, startOffset: 0)
            ])
        reading.close()
    }
}
