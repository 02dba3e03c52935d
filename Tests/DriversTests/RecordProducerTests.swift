// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import Foundation
import KafkaLog
import PushModel
import Rdkafka
import Testing

@Suite struct `Record producer` {
    @Test func `each accepted ticket comes back once, and wakes`() async throws {
        let fixture = try KafkaFixture(["suppressions": 3])
        let producer = try fixture.producer(["suppressions"])
        for ticket in UInt64(0)..<1000 {
            let accepted = Bytes("key-\(ticket)").lend { key in
                producer.produce(topic: 0, key: key, value: nil, ticket: ticket)
            }
            try #require(accepted == .accepted)
        }
        #expect(producer.outstanding > 0)
        try await waitUntil("a wake-up") { isReadable(producer.wakeDescriptor) }
        var tickets: [UInt64] = []
        try await waitUntil("all reports") {
            producer.clearWakeUp()
            producer.poll(now: .current) { ticket, error in
                #expect(error == nil)
                tickets.append(ticket)
            }
            return tickets.count >= 1000
        }
        #expect(tickets.sorted() == Array(0..<1000))
        #expect(producer.outstanding == 0)
        #expect(producer.fatalError == nil)
    }

    @Test func `a report says where its record was written`() async throws {
        let fixture = try KafkaFixture(["suppressions": 3])
        let producer = try fixture.producer(["suppressions"])
        for ticket in UInt64(0)..<30 {
            let accepted = Bytes("key").lend { key in
                producer.produce(
                    topic: 0, partition: Int32(ticket % 3), key: key, value: nil, ticket: ticket)
            }
            try #require(accepted == .accepted)
        }
        var positions: [UInt64: RecordProducer.Report.Position] = [:]
        try await waitUntil("all reports") {
            producer.pollReports(now: .current) { report in
                #expect(report.error == nil)
                positions[report.ticket] = report.position
            }
            return positions.count >= 30
        }
        for (ticket, position) in positions {
            #expect(position.partition == Int32(ticket % 3))
            #expect(position.offset == Int64(ticket / 3))
        }
    }

    @Test func `refused replicas and lost connections are retried without a repetition`()
        async throws
    {
        let fixture = try KafkaFixture(["suppressions": 1])
        // NOT_ENOUGH_REPLICAS, then a dropped connection, on Produce.
        try fixture.kafka.perform(.fail(apiKey: 0, code: 19, count: 2))
        try fixture.kafka.perform(.fail(apiKey: 0, code: -195, count: 1))
        try fixture.write(200, to: "suppressions")
        let reader = try fixture.reader(["suppressions"])
        var values: [String] = []
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 1000) { record in
                values.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "")
            }
            return reader.isCaughtUp
        }
        #expect(values == (0..<200).map(String.init))
        reader.close(timeout: .seconds(5))
    }

    @Test func `a full queue and a record that is too large are told apart`() throws {
        let fixture = try KafkaFixture(["suppressions": 1])
        try fixture.kafka.perform(.down(broker: 1))
        let producer = try fixture.producer(
            ["suppressions"],
            ["queue.buffering.max.messages": "2", "message.max.bytes": "1000"])
        let large = Bytes(String(repeating: "x", count: 2000)).lend { value in
            producer.produce(topic: 0, key: nil, value: value, ticket: 0)
        }
        guard case .failed(let error) = large else {
            Issue.record("accepted a record over message.max.bytes")
            return
        }
        #expect(error.code.name == "MSG_SIZE_TOO_LARGE")
        #expect(producer.produce(topic: 0, key: nil, value: nil, ticket: 1) == .accepted)
        #expect(producer.produce(topic: 0, key: nil, value: nil, ticket: 2) == .accepted)
        #expect(producer.produce(topic: 0, key: nil, value: nil, ticket: 3) == .queueFull)
        #expect(!producer.flush(timeout: .milliseconds(50)))
    }

    @Test func `a record nobody took in time comes back with its error`() async throws {
        let fixture = try KafkaFixture(["suppressions": 1])
        try fixture.kafka.perform(.down(broker: 1))
        let producer = try fixture.producer(["suppressions"], ["message.timeout.ms": "300"])
        #expect(producer.produce(topic: 0, key: nil, value: nil, ticket: 7) == .accepted)
        var failed: [UInt64: ErrorCode] = [:]
        try await waitUntil("the failure") {
            producer.poll(now: .current) { ticket, error in failed[ticket] = error }
            return !failed.isEmpty
        }
        #expect(failed.keys.elementsEqual([7]))
        #expect(failed[7]?.name == "_MSG_TIMED_OUT")
        // One for the outage, however many connection attempts there were.
        let codes = producer.takeWarnings().map(\.code)
        #expect(Set(codes).count == codes.count)
    }

    @Test func `headers and keys arrive, also those of another producer`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let producer = try fixture.producer(["events"])
        let accepted = Bytes("door-1").lend { key in
            producer.produce(
                topic: 0, key: key, value: nil,
                headers: [("ce_id", "old"), ("ce_id", "new"), ("empty", "")], ticket: 1)
        }
        try #require(accepted == .accepted && producer.flush(timeout: .seconds(5)))
        try kcat(bootstrap: fixture.kafka.bootstrap)

        let reader = try fixture.reader(["events"])
        var seen: [[String?]] = []
        var all: [[String]] = []
        try await waitUntil("both") {
            _ = reader.poll(now: .current, limit: 10) { record in
                let id = record.header("ce_id").map { String(decoding: $0, as: UTF8.self) }
                let empty = record.header(named: "empty").map { "\($0.count)" }
                let key = record.key.map { String(decoding: $0, as: UTF8.self) }
                all.append(
                    record.headers.map { "\($0.name)=\(String(decoding: $0.value, as: UTF8.self))" }
                )
                seen.append([key, id, empty, record.header("absent").map { "\($0.count)" }])
                #expect(abs(record.timestampMilliseconds - Now.current.wall.milliseconds) < 60_000)
            }
            return reader.isCaughtUp
        }
        #expect(seen == [["door-1", "new", "0", nil], ["door-2", "foreign", nil, nil]])
        #expect(all == [["ce_id=old", "ce_id=new", "empty="], ["ce_id=foreign"]])
        reader.close(timeout: .seconds(5))
    }

    private func kcat(bootstrap: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/kcat")
        process.arguments = [
            "-P", "-b", bootstrap, "-t", "events", "-p", "0", "-K", "=", "-H", "ce_id=foreign",
        ]
        let input = Pipe()
        process.standardInput = input
        try process.run()
        input.fileHandleForWriting.write(Data("door-2=value\n".utf8))
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }
}

@Suite struct `Topic admin` {
    @Test func `the embedded Kafka has topics but no administration`() throws {
        let fixture = try KafkaFixture(["events": 3])
        let admin = try TopicAdmin(
            settings: fixture.settings(), timeout: .seconds(5), logger: fixture.logger)
        #expect(try admin.partitionCount(of: "events") == 3)
        #expect(throws: KafkaError.missingTopic("nothing")) {
            try admin.partitionCount(of: "nothing")
        }
        #expect(admin.isEmbedded == true)
        #expect(throws: KafkaError.unsupported(operation: "CreateTopics")) {
            try admin.create("new", partitions: 1)
        }
        #expect(throws: KafkaError.unsupported(operation: "DescribeConfigs")) {
            try admin.describe("events")
        }
    }

    @Test func `no broker is an error within the time given`() throws {
        let fixture = try KafkaFixture(["events": 3])
        try fixture.kafka.perform(.down(broker: 1))
        let admin = try TopicAdmin(
            settings: fixture.settings(), timeout: .milliseconds(300), logger: fixture.logger)
        let stopwatch = Stopwatch()
        for operation in [
            { _ = try admin.partitionCount(of: "events") },
            { try admin.create("new", partitions: 1) },
        ] {
            let error = #expect(throws: KafkaError.self) { try operation() }
            #expect(error?.description.contains("does not answer") == true)
        }
        #expect(admin.isEmbedded == nil)
        #expect(stopwatch.time < .seconds(20))
    }
}
