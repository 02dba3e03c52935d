// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import PushModel
import Rdkafka
import RegistrarRules
import Testing

@testable import Registrar

/// What the registrar's thread makes of what Kafka says, and of what it is asked.
@Suite struct `A registrar's loop` {
    private let fixture: RegistrarLoopFixture
    private var kafka: RegistrarKafkaStandIn { fixture.kafka }

    init() throws { fixture = try RegistrarLoopFixture() }

    private static func accepted(_ sequence: Int64, at time: WallTime) -> RegistrationArbiter.Answer
    {
        .accepted(sequence: sequence, registeredAt: time, isRetry: false)
    }

    // MARK: Partitions that come

    @Test func `a partition is answered for once it was read to its end`() async throws {
        fixture.turn(.assigned([RegistrarLoopFixture.assignment(of: 0)]))
        #expect(try await fixture.put(3).value == .notOwner)
        #expect(kafka.written.isEmpty && fixture.mailbox.counters.owned.isEmpty)
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0)))
        let answer = try await fixture.put(3)
        #expect(kafka.written.count == 1 && fixture.mailbox.counters.underWay == 1)
        try fixture.acknowledgeLast(at: 100)
        #expect(await answer.value == Self.accepted(3, at: fixture.now.wall))
        #expect(fixture.mailbox.counters.owned == [0])
    }

    @Test func `an empty partition is answered for at once, and another's end gives it nothing`()
        async throws
    {
        fixture.turn(
            .assigned([
                RegistrarLoopFixture.assignment(of: 0, logEnd: 0),
                RegistrarLoopFixture.assignment(of: 1),
            ]), .endOfPartition(RegistrarLoopFixture.id(2)))
        #expect(fixture.mailbox.counters.owned == [0])
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(1)))
        #expect(fixture.mailbox.counters.owned == [0, 1])
    }

    @Test func `records that come with the assignment belong to it`() async throws {
        kafka.records = [
            RegistrarLoopFixture.record(7, at: 0), nil,
            RegistrarLoopFixture.record(9, at: 1, partition: 1),
        ]
        fixture.turn(.assigned([RegistrarLoopFixture.assignment(of: 0)]))
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0)))
        #expect(try await fixture.list(in: [0]) == [7])
        #expect(try await fixture.put(6).value == .stale(stored: 7))
        #expect(fixture.mailbox.counters.recordsRead == 3)
    }

    @Test func `a partition that comes again begins with what is read then`() async throws {
        fixture.own(0)
        let first = try await fixture.put(5)
        let ticket = try #require(kafka.written.last).ticket
        fixture.turn(
            .lost([RegistrarLoopFixture.id(0)]),
            .assigned([RegistrarLoopFixture.assignment(of: 0, epoch: 2)]))
        // The end of the assignment before says nothing.
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0)))
        #expect(fixture.mailbox.counters.owned.isEmpty)
        kafka.records = [RegistrarLoopFixture.record(4, at: 0)]
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0, epoch: 2)))
        kafka.reports = [(ticket, 90)]
        fixture.turn()
        // It is in the log; whoever owns the partition reads it there.
        #expect(await first.value == Self.accepted(5, at: fixture.now.wall))
        #expect(try await fixture.list(in: [0]) == [4])
    }

    // MARK: Partitions that go

    @Test func `a partition is given back once its writes have ended`() async throws {
        fixture.own(0, 1)
        let answer = try await fixture.put(3)
        fixture.turn(.revoking([RegistrarLoopFixture.id(0), RegistrarLoopFixture.id(1)]))
        #expect(kafka.revokesCompleted == 0)
        #expect(try await fixture.put(4).value == .notOwner)
        #expect(try await fixture.put(4, in: 1).value == .notOwner)
        try fixture.acknowledgeLast(at: 100)
        #expect(kafka.revokesCompleted == 1)
        #expect(await answer.value == Self.accepted(3, at: fixture.now.wall))
        fixture.turn()
        #expect(kafka.revokesCompleted == 1 && kafka.written.count == 1)
    }

    @Test func `what is not under way is given back at once`() {
        fixture.own(0)
        fixture.turn(.revoking([]))
        #expect(kafka.revokesCompleted == 1 && fixture.mailbox.counters.owned == [0])
        fixture.turn(.revoking([RegistrarLoopFixture.id(0)]))
        #expect(kafka.revokesCompleted == 2 && fixture.mailbox.counters.owned.isEmpty)
    }

    @Test func `partitions that are lost answer nobody any more`() async throws {
        fixture.own(0, 1)
        let answer = try await fixture.put(3)
        fixture.turn(.lost([RegistrarLoopFixture.id(0)]))
        #expect(fixture.mailbox.counters.owned == [1])
        #expect(try await fixture.put(4).value == .notOwner)
        #expect(try await fixture.remove().value == .notOwner)
        #expect(try await fixture.list(in: [0]) == nil)
        #expect(try await fixture.list(in: [0, 1]) == nil)
        #expect(try await fixture.list(in: [1]) == [])
        kafka.reports = [(try #require(kafka.written.last).ticket, nil)]
        fixture.turn()
        #expect(await answer.value == .unacknowledged)
        #expect(kafka.revokesCompleted == 0)
    }

    @Test func `partitions that are lost while they are given back hold nobody`() async throws {
        fixture.own(0, 1)
        _ = try await fixture.put(3)
        fixture.turn(.revoking([RegistrarLoopFixture.id(0), RegistrarLoopFixture.id(1)]))
        fixture.turn(.lost([RegistrarLoopFixture.id(0)]))
        #expect(fixture.mailbox.counters.owned.isEmpty)
        // The group waits for nobody any more: nothing is completed for what is lost.
        try fixture.acknowledgeLast(at: 100)
        #expect(kafka.revokesCompleted == 0)
    }

    // MARK: Writes

    @Test func `a removal writes a tombstone`() async throws {
        fixture.own(0)
        kafka.records = [RegistrarLoopFixture.record(7, at: 4)]
        fixture.turn()
        let answer = try await fixture.remove()
        let write = try #require(kafka.written.last)
        #expect(write.value == nil && write.tokenClass == .controls && write.partition == 0)
        #expect(write.key == RegistrarLoopFixture.key.recordKey(handler: "Garage"))
        try fixture.acknowledgeLast(at: 100)
        #expect(await answer.value == .removed)
        #expect(try await fixture.list(in: [0]) == [])
    }

    @Test func `a write has its class, its order and its writer beside it`() async throws {
        fixture.turn(.assigned([RegistrarLoopFixture.assignment(of: 0, logEnd: 12)]))
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0)))
        _ = try await fixture.put(3)
        _ = try await fixture.put(4)
        let writes = kafka.written
        #expect(writes.map(\.order) == [.sequence(3), .sequence(4)])
        #expect(writes.allSatisfy { $0.owner == Ownership(since: 12, at: fixture.now.wall) })
        #expect(writes.count == 2 && writes[0].ticket != writes[1].ticket)
        #expect(writes.allSatisfy { $0.tokenClass == .controls && $0.value != nil })
        #expect(Set(writes.map(\.writer)).count == 1)
    }

    @Test func `after a stop nothing is taken until the group has had its say`() async throws {
        fixture.own(0)
        fixture.turn(after: .seconds(4))
        let answer = try await fixture.put(3)
        fixture.turn(after: .milliseconds(2900))
        #expect(kafka.written.isEmpty)
        // Somebody else has the partition, as it turns out.
        fixture.turn(.lost([RegistrarLoopFixture.id(0)]))
        fixture.turn(after: .milliseconds(100))
        #expect(await answer.value == .notOwner)
        #expect(kafka.written.isEmpty)
    }

    @Test func `what Kafka does not take is answered at once`() async throws {
        fixture.own(0)
        kafka.takesWrites = false
        let answer = try await fixture.put(3)
        fixture.turn()
        #expect(await answer.value == .unacknowledged)
        #expect(fixture.mailbox.counters.underWay == 0)
        #expect(try await fixture.list(in: [0]) == [])
    }

    @Test func `who waits too long is told to try again, and nobody else`() async throws {
        fixture.own(0)
        let first = try await fixture.put(3)
        fixture.turn(after: .seconds(3))
        let second = try await fixture.put(4)
        fixture.turn(after: .seconds(2) - .nanoseconds(1))
        #expect(fixture.mailbox.counters.unacknowledged == 0)
        fixture.turn(after: .nanoseconds(1))
        #expect(await first.value == .unacknowledged)
        #expect(fixture.mailbox.counters.unacknowledged == 1)
        // It is in the log all the same: the second is answered, and the first not once more.
        kafka.reports = kafka.written.enumerated().map { ($1.ticket, 100 + Int64($0)) }
        fixture.turn()
        guard case .accepted(4, _, false) = await second.value else {
            Issue.record("the second was not accepted")
            return
        }
        fixture.turn(after: .seconds(10))
        #expect(fixture.mailbox.counters.unacknowledged == 1)
    }

    // MARK: Another registrar's late records

    private func overtake() {
        kafka.records = [
            RegistrarLoopFixture.record(7, at: 10, owner: RegistrarLoopFixture.later),
            RegistrarLoopFixture.record(5, at: 11, owner: RegistrarLoopFixture.former),
        ]
        fixture.turn()
    }

    @Test func `what an older registration has replaced is read and written again`() throws {
        fixture.own(0)
        overtake()
        let asked = try #require(fixture.reread.first)
        #expect(asked.partition == 0 && asked.offset == 10 && fixture.reread.count == 1)
        #expect(kafka.written.isEmpty)
        asked.receiver(.value([1, 2, 3]))
        fixture.turn()
        #expect(kafka.written.map(\.value) == [[1, 2, 3]])
        #expect(fixture.mailbox.counters.writtenAgain == 1)
    }

    @Test func `what could not be read is asked for again after a second, until it could`() throws {
        fixture.own(0)
        overtake()
        try #require(fixture.reread.first).receiver(.unavailable)
        fixture.turn()
        fixture.turn(after: .milliseconds(999))
        #expect(fixture.reread.count == 1)
        fixture.turn(after: .milliseconds(1))
        #expect(fixture.reread.map(\.offset) == [10, 10])
        fixture.turn(after: .seconds(1))
        #expect(fixture.reread.count == 2, "it is being read")
        try #require(fixture.reread.last).receiver(.value([4]))
        fixture.turn()
        #expect(kafka.written.map(\.value) == [[4]])
    }

    @Test func `one that cannot be read puts off no other`() throws {
        fixture.own(0, 1)
        overtake()
        kafka.records = [
            RegistrarLoopFixture.record(
                7, at: 10, partition: 1, owner: RegistrarLoopFixture.later),
            RegistrarLoopFixture.record(
                5, at: 11, partition: 1, owner: RegistrarLoopFixture.former),
        ]
        fixture.turn()
        try #require(fixture.reread.count == 2)
        fixture.reread[0].receiver(.unavailable)
        fixture.turn()
        fixture.turn(after: .milliseconds(900))
        fixture.reread[1].receiver(.unavailable)
        fixture.turn()
        fixture.turn(after: .milliseconds(100))
        #expect(fixture.reread.count > 2)
    }

    @Test func `what is not in the log any more is not written`() throws {
        fixture.own(0)
        overtake()
        for found in [RecordFetcher.Found.gone, .value(nil)] {
            try #require(fixture.reread.last).receiver(found)
        }
        for _ in 0..<3 { fixture.turn(after: .seconds(2)) }
        #expect(kafka.written.isEmpty && fixture.reread.count == 1)
    }

    @Test func `a replica that does not own the partition writes nothing again`() {
        fixture.turn(.assigned([RegistrarLoopFixture.assignment(of: 0)]))
        overtake()
        #expect(fixture.reread.isEmpty)
        fixture.turn(.endOfPartition(RegistrarLoopFixture.id(0)))
        #expect(fixture.reread.count == 1, "once it is the owner, it does")
        fixture.turn(.lost([RegistrarLoopFixture.id(0)]))
        for asked in fixture.reread { asked.receiver(.value([1])) }
        fixture.turn()
        #expect(kafka.written.isEmpty)
    }

    // MARK: Its own life

    @Test func `it says where it is found when it owns more, and every ten seconds`() {
        fixture.turn()
        #expect(kafka.announcements == ["here"])
        fixture.turn(after: .seconds(9))
        #expect(kafka.announcements.count == 1)
        fixture.own(0)
        #expect(kafka.announcements.count == 2)
        fixture.turn(after: .seconds(9))
        #expect(kafka.announcements.count == 2)
        fixture.turn(after: .seconds(1))
        #expect(kafka.announcements.count == 3)
    }

    @Test func `a consumer that asks for it is restarted, and one that cannot be ends the loop`() {
        kafka.facts = [.restartNeeded(RdkafkaError(.failed))]
        #expect(fixture.turn() == nil && kafka.restarts == 1)
        kafka.restartFails = true
        kafka.facts = [.restartNeeded(RdkafkaError(.failed))]
        #expect(fixture.turn()?.contains("cannot be started again") == true)
    }

    @Test func `a client that has failed for good ends the loop`() {
        #expect(fixture.turn() == nil)
        kafka.facts = [.fatal(RdkafkaError(.fatal))]
        #expect(fixture.turn()?.contains("the consumer has failed") == true)
        kafka.failure = "the producer has failed: fenced"
        #expect(fixture.turn() == "the producer has failed: fenced")
    }

    @Test func `at the end what is under way is waited for and answered, and the rest told`()
        async throws
    {
        fixture.own(0)
        let first = try await fixture.put(3)
        let second = try await fixture.put(4)
        kafka.flushed = [(try #require(kafka.written.first).ticket, 100)]
        fixture.end()
        #expect(await first.value == Self.accepted(3, at: fixture.now.wall))
        #expect(await second.value == .unacknowledged)
        // Nobody is left without an answer.
        #expect(await fixture.mailbox.list(RegistrarLoopFixture.key, in: nil) == nil)
    }

    @Test func `a partition that Kafka cannot serve is told until it can, or is another's`() {
        func say(_ partitions: Int32...) {
            fixture.turn(
                .unavailable(
                    partitions.map {
                        UnavailablePartition(
                            topic: 0, partition: $0,
                            cause: RdkafkaError(.timedOut, message: "no leader"))
                    }))
        }
        func told() -> [Int32] { fixture.mailbox.counters.unavailable.keys.sorted() }
        fixture.own(0, 1, 2)
        say(0, 1, 2)
        #expect(told() == [0, 1, 2])
        fixture.turn(.availableAgain(topic: 0, partition: 1))
        #expect(told() == [0, 2])
        fixture.turn(.lost([RegistrarLoopFixture.id(0)]))
        #expect(told() == [2])
        fixture.turn(.revoking([RegistrarLoopFixture.id(2)]))
        #expect(told().isEmpty)
    }

    @Test func `it asks every two seconds what Kafka cannot serve`() {
        for _ in 0..<10 { fixture.turn(after: .seconds(1)) }
        #expect(kafka.looks == 5)
    }
}
