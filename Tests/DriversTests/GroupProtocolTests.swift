// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Rdkafka
import Testing

@testable import KafkaLog

@Suite struct `Group protocols` {
    private func settings(_ properties: [String: String]) -> KafkaClientSettings {
        KafkaClientSettings(bootstrap: "127.0.0.1:1", group: "fleet", properties: properties)
    }

    @Test(arguments: [
        ([:], GroupProtocol.eager), (["group.protocol": "classic"], .eager),
        (["partition.assignment.strategy": "roundrobin,range"], .eager),
        (["partition.assignment.strategy": "cooperative-sticky"], .cooperative),
        (["group.protocol": "consumer"], .consumer), (["group.protocol": "Consumer"], .consumer),
    ])
    func `the properties say which protocol is wanted`(
        properties: [String: String], wanted: GroupProtocol
    ) {
        #expect(GroupProtocol(properties) == wanted)
    }

    @Test(arguments: [
        (["partition.assignment.strategy": "cooperative-sticky"], 0x0209_00ff, 0x020a_00ff),
        (["group.protocol": "consumer"], 0x020b_00ff, 0x020c_00ff),
    ])
    func `each protocol is refused below the library that bears it, and the message says which`(
        properties: [String: String], tooOld: Int, newEnough: Int
    ) throws {
        let name = try #require(properties.keys.first)
        let error = #expect(throws: KafkaError.self) {
            try settings(properties).refuseUnsafeProperties(libraryVersion: tooOld)
        }
        guard case .refusedProperty(name, let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        let needed = "needs librdkafka 2.\(newEnough >> 16 & 0xff) or newer"
        #expect(reason.contains(needed), "\(reason)")
        #expect(reason.contains("this is \(RdkafkaVersion.text)"), "\(reason)")
        try settings(properties).refuseUnsafeProperties(libraryVersion: newEnough)
    }

    @Test func `eager groups are for every library`() throws {
        for properties in [[:], ["partition.assignment.strategy": "roundrobin"]] {
            try settings(properties).refuseUnsafeProperties(libraryVersion: 0x0200_02ff)
        }
    }

    @Test(arguments: [
        ("session.timeout.ms", "group.consumer.session.timeout.ms"),
        ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
        ("partition.assignment.strategy", "group.remote.assignor"),
    ])
    func `what the brokers decide is refused with the name of theirs`(
        property: String, theirs: String
    ) {
        let both = settings(["group.protocol": "consumer", property: "1"])
        let error = #expect(throws: KafkaError.self) {
            try both.refuseUnsafeProperties(libraryVersion: 0x7f00_0000)
        }
        guard case .refusedProperty(property, let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.contains(theirs), "\(reason)")
    }

    @Test func `the property for classic groups is right whatever the library`() throws {
        try KafkaClientSettings.validate(property: "group.protocol", value: "classic")
        try settings(["group.protocol": "classic"]).validate()
        let events = try settings([:]).configuration(for: .events)
        #expect(events.value(of: "group.protocol") == (GroupProtocol.isInLibrary ? "classic" : nil))
    }

    @Test(.enabled(if: GroupProtocol.consumer.isAllowed(libraryVersion: RdkafkaVersion.number)))
    func `the brokers' protocol goes without what they decide, and only to members`() throws {
        var settings = settings(["group.protocol": "consumer", "group.remote.assignor": "range"])
        try settings.validate()
        let events = try settings.configuration(for: .events)
        #expect(events.value(of: "group.protocol") == "consumer")
        #expect(events.value(of: "group.remote.assignor") == "range")
        #expect(try settings.configuration(for: .table).value(of: "group.protocol") == "classic")
        // A registrar's writes end within its session, which is to be no other's to decide.
        settings.boundsWaitsBySession = true
        try settings.validate()
        let registrar = try settings.configuration(for: .events)
        #expect(registrar.value(of: "group.protocol") == "classic")
        #expect(registrar.value(of: "session.timeout.ms") == "15000")
    }

    @Test(
        arguments: [
            (
                0x0200_02ff, nil,
                "librdkafka X: range and roundrobin, cooperative-sticky needs 2.10, "
                    + "group.protocol=consumer needs 2.12"
            ),
            (
                0x020c_00ff, nil,
                "librdkafka X: range and roundrobin, cooperative-sticky, group.protocol=consumer"
            ),
            (
                0x020c_00ff, true,
                "librdkafka X: range and roundrobin, cooperative-sticky, group.protocol=consumer"
            ),
            (
                0x020c_00ff, false,
                "librdkafka X: range and roundrobin, cooperative-sticky, no group.protocol=consumer, "
                    + "which needs Kafka 4.0"
            ),
        ] as [(Int, Bool?, String)])
    func `one line says what library and Kafka bear`(
        version: Int, isInKafka: Bool?, line: String
    ) {
        #expect(GroupProtocol.summary(library: "X", version, isInKafka: isInKafka) == line)
    }

    // MARK: What brokers answer

    @Test(arguments: [
        ("[thrd:a:9092/1]: a:9092/1:   ApiKey ConsumerGroupHeartbeat (68) Versions 0..1", 68),
        ("[thrd:a:9092/1]: a:9092/1:   ApiKey Unknown-75? (75) Versions 0..0", 75),
        (
            "[thrd:a:9092/1]: a:9092/1:  Feature LZ4: FindCoordinator (0..32767) supported by broker",
            nil
        ),
        ("[thrd:a:9092/1]: a:9092/1: Broker API support:", nil),
    ])
    func `a line of the library's log names a request that a broker answers`(
        line: String, key: Int?
    ) {
        #expect(BrokerRequests.apiKey(in: line) == key)
    }

    @Test func `a Kafka is asked whether it has the brokers' protocol`() throws {
        let fixture = try KafkaFixture(["events": 1])
        let settings = fixture.settings()
        // The embedded Kafka has it in those libraries that have.
        let has = RdkafkaVersion.number >= 0x0208_0000
        #expect(try settings.kafkaHasConsumerProtocol() == has)
        try fixture.kafka.perform(.down(broker: 1))
        #expect(try settings.kafkaHasConsumerProtocol(timeout: .milliseconds(300)) == nil)
    }

    @Test(
        arguments: [
            ([:], false, false), (["group.protocol": "consumer"], nil, false),
            (["group.protocol": "consumer"], true, false),
            (["group.protocol": "consumer"], false, true),
        ] as [([String: String], Bool?, Bool)])
    func `a Kafka without the protocol that is wanted is told`(
        properties: [String: String], isInKafka: Bool?, isWrong: Bool
    ) {
        let problem = settings(properties).protocolProblem(isInKafka: isInKafka)
        #expect((problem != nil) == isWrong)
        #expect(problem.map { "\($0)".contains("which needs 4.0; leave it out") } ?? true)
    }

    // MARK: Members

    static let incremental = [
        [
            "partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": "3000",
            "heartbeat.interval.ms": "200",
        ],
        ["group.protocol": "consumer"],
    ]
    static let areAllowed = GroupProtocol.consumer.isAllowed(
        libraryVersion: RdkafkaVersion.number)

    /// A member that commits what it has delivered when partitions are taken from it.
    private func member(
        of fixture: KafkaFixture, _ properties: [String: String]
    ) throws -> Reading {
        let quick = ["fetch.wait.max.ms": "20", "auto.commit.interval.ms": "100"]
        let reading = Reading(
            try EventConsumer(
                settings: KafkaClientSettings(
                    bootstrap: fixture.kafka.bootstrap, group: "fleet",
                    properties: properties.merging(quick) { $1 }),
                topics: ["events"], startFrom: .earliest, logger: fixture.logger))
        reading.onRevoking = { [unowned reading] consumer, revoked in
            consumer.completeRevoke(
                commit: reading.positions(of: revoked), now: .current)
        }
        return reading
    }

    @Test(.enabled(if: areAllowed), arguments: incremental)
    func `a member that joins gets some partitions, and the others are read on meanwhile`(
        properties: [String: String]
    ) async throws {
        let fixture = try KafkaFixture(["events": 4])
        let first = try member(of: fixture, properties)
        try await waitUntil("all partitions") {
            first.turn()
            return first.held.count == 4
        }
        for partition in Int32(0)..<4 { try fixture.write(5, to: "events", partition: partition) }
        try await first.waitForRecords(20)
        let before = first.held
        let second = try member(of: fixture, properties)
        try await waitUntil("a share") {
            first.turn()
            second.turn()
            return first.held.count == 2 && second.held.count == 2
        }
        // What is kept is the same assignment as before.
        #expect(first.held.isSubset(of: before))
        for partition in Int32(0)..<4 {
            try fixture.write(5, from: 5, to: "events", partition: partition)
        }
        try await waitUntil("every record") {
            first.turn()
            second.turn()
            return Set(first.records + second.records).count == 40
        }
        second.close()
        try await waitUntil("all partitions again") {
            first.turn()
            return first.held.count == 4
        }
        first.close()
    }

    @Test(.enabled(if: areAllowed), arguments: incremental)
    func `a note is left for the next owner with an offset that is new`(
        properties: [String: String]
    ) async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(9, to: "events")
        let first = try member(of: fixture, properties)
        try await first.waitForRecords(9)
        let id = try #require(first.assignments.first?.id)
        #expect(
            first.consumer.commit(
                [CommitPosition(id, offset: 5, metadata: "v1 8 3")], now: .current) == 1)
        first.close()
        let second = try member(of: fixture, properties)
        try await second.waitForAssignment()
        #expect(second.assignments.map(\.startOffset) == [5])
        #expect(second.assignments.map(\.metadata) == ["v1 8 3"])
        second.close()
    }
}

extension Reading {
    /// What is assigned by all facts together.
    fileprivate var held: Set<AssignmentID> {
        facts.reduce(into: []) { held, fact in
            switch fact {
            case .assigned(let assignments): held.formUnion(assignments.map(\.id))
            case .revoking(let ids), .lost(let ids): held.subtract(ids)
            default: break
            }
        }
    }

    /// After the last delivered record of each.
    fileprivate func positions(of ids: [AssignmentID]) -> [CommitPosition] {
        let assigned = facts.flatMap { fact -> [Assignment] in
            if case .assigned(let assignments) = fact { assignments } else { [] }
        }
        return assigned.filter { ids.contains($0.id) }.compactMap { assignment in
            let offsets = records.filter { $0.partition == assignment.partition }.map(\.offset)
            return offsets.max().map { CommitPosition(assignment.id, offset: $0 + 1) }
        }
    }
}
