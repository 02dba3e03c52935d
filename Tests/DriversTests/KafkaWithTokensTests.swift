// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import Foundation
import Logging
import Rdkafka
import Testing

@testable import KafkaLog

/// Clients of every kind, a Kafka that wants tokens, and an endpoint that has them.
@Suite struct `Kafka with tokens of an endpoint` {
    private let fixture: KafkaFixture
    private let gate: KafkaSASLGate
    private let lines = Lines()
    private let logger: Logger

    init() throws {
        fixture = try KafkaFixture(["events": 1, "registrations": 1])
        gate = try KafkaSASLGate(before: fixture.kafka.bootstrap)
        let handler = RecordingHandler(lines: lines)
        logger = Logger(label: "kafka", factory: { _ in handler })
    }

    private func settings(
        _ endpoint: KafkaTokenEndpoint, _ extra: [String: String] = [:]
    ) -> KafkaClientSettings {
        var properties = endpoint.kafkaProperties(extra)
        properties.merge([
            "session.timeout.ms": "3000", "heartbeat.interval.ms": "200",
            "fetch.wait.max.ms": "20", "reconnect.backoff.max.ms": "200", "debug": "security",
        ]) { theirs, _ in theirs }
        return KafkaClientSettings(
            bootstrap: gate.bootstrap, group: "fleet", properties: properties)
    }

    private func expectNoSecrets(_ endpoint: KafkaTokenEndpoint, _ more: [String] = []) {
        let said = lines.all + more
        #expect(!said.contains { $0.contains(KafkaTokenEndpoint.secret) })
        for token in endpoint.requests.map(\.token) where !token.isEmpty {
            #expect(!said.contains { $0.contains(token) })
        }
    }

    @Test func `every client shows the endpoint's token, which was asked for once`() async throws {
        defer { gate.close() }
        let endpoint = try KafkaTokenEndpoint(isTLS: true)
        let settings = settings(endpoint)
        let admin = try TopicAdmin(settings: settings, logger: logger)
        #expect(try admin.partitionCount(of: "events") == 1)
        let producer = try RecordProducer(settings: settings, topics: ["events"], logger: logger)
        try write(to: producer, ticket: 7)
        let table = try TableReader(
            settings: settings, topics: ["registrations"], now: .current, logger: logger)
        try await waitUntil("the table's end") {
            table.clearWakeUp()
            _ = table.poll(now: .current, limit: 10) { _ in }
            return table.isCaughtUp
        }
        let consumer = try EventConsumer(
            settings: settings, topics: ["events"], startFrom: .earliest, logger: logger)
        let reading = Reading(consumer)
        try await reading.waitForRecords(1)
        reading.close()
        table.close(timeout: .seconds(5))

        let requests = endpoint.requests
        #expect(requests.count == 1)
        #expect(requests.allSatisfy { $0.isInOrder })
        let shown = Set(gate.shown)
        #expect(
            shown == [
                KafkaSASLGate.Shown(
                    token: requests[0].token,
                    extensions: ["logicalCluster=lkc-1", "poolID=pool-7"])
            ])
        #expect(gate.shown.count >= 4)
        #expect(lines.all.contains { $0.contains("OAUTHBEARER") })
        expectNoSecrets(endpoint)
    }

    @Test func `a token is replaced before it ends, and new connections show the new one`()
        async throws
    {
        defer { gate.close() }
        let endpoint = try KafkaTokenEndpoint(.token(life: 10))
        let producer = try RecordProducer(
            settings: settings(endpoint), topics: ["events"], logger: logger)
        try write(to: producer, ticket: 1)
        let first = try #require(endpoint.requests.first)
        try await waitUntil("another token") { endpoint.requests.count >= 2 }
        let next = endpoint.requests[1]
        #expect(next.time < first.expiresAt)
        #expect(next.token != first.token)
        gate.take { $0 != first.token }
        gate.dropClients()
        try write(to: producer, ticket: 2)
        #expect(gate.shown.contains { $0.token == next.token })
        expectNoSecrets(endpoint)
    }

    @Test func `an endpoint that is down is one clear error, and all goes on when it is back`()
        async throws
    {
        defer { gate.close() }
        let endpoint = try KafkaTokenEndpoint()
        endpoint.stop()
        let settings = settings(endpoint)
        let said =
            "the token endpoint \(endpoint.url) takes no connection: "
            + "check sasl.oauthbearer.token.endpoint.url, and whether it runs"
        let producer = try RecordProducer(settings: settings, topics: ["events"], logger: logger)
        var warnings: [KafkaWarning] = []
        try await waitUntil("the warning") {
            producer.poll(now: .current) { _, _ in }
            warnings += producer.takeWarnings()
            return warnings.contains { $0.text.contains(said) }
        }
        // Both commands and the start of a worker name it too.
        let admin = #expect(throws: KafkaError.self) {
            _ = try TopicAdmin(settings: settings, logger: logger)
        }
        let table = #expect(throws: KafkaError.self) {
            _ = try TableReader(
                settings: settings, topics: ["registrations"], timeout: .seconds(1), now: .current,
                logger: logger)
        }
        for error in [admin, table] {
            #expect(error?.description == "Kafka requires a token, and \(said)")
        }
        #expect(producer.tokenFailure?.kind == .unreachable)

        try endpoint.start()
        try write(to: producer, ticket: 1)
        #expect(producer.tokenFailure == nil)
        warnings += producer.takeWarnings()
        // Said once, however often it was tried.
        #expect(warnings.count { $0.text.contains(said) } == 1)
        expectNoSecrets(endpoint, warnings.map(\.text))
    }

    @Test func `an endpoint in trouble is asked seldom`() async throws {
        defer { gate.close() }
        let endpoint = try KafkaTokenEndpoint(.status(503))
        let producer = try RecordProducer(
            settings: settings(endpoint), topics: ["events"], logger: logger)
        try await waitUntil("a second request") { endpoint.requests.count >= 2 }
        try await Task.sleep(for: .seconds(2))
        // At least 0.1, 0.2, 0.4, 0.8 and 1.6 s lie between them.
        #expect(endpoint.requests.count <= 7)
        withExtendedLifetime(producer) {}
    }

    @Test func `clients that go while they wait for a token leave nothing behind`() async throws {
        defer { gate.close() }
        let endpoint = try KafkaTokenEndpoint(.status(503))
        weak var tokens: TokenSource?
        do {
            let settings = settings(endpoint)
            tokens = settings.tokens
            for _ in 1...2 {
                let producer = try RecordProducer(
                    settings: settings, topics: ["events"], logger: logger)
                let before = endpoint.requests.count
                try await waitUntil("a request") { endpoint.requests.count > before }
                withExtendedLifetime(producer) {}
            }
            #expect(tokens != nil)
        }
        // The thread that asks holds it.
        try await waitUntil("the end of asking") { tokens == nil }
        #expect(gate.shown.isEmpty)
    }

    private func write(to producer: RecordProducer, ticket: UInt64) throws {
        let accepted = Bytes("value").lend { value in
            producer.produce(topic: 0, key: nil, value: value, ticket: ticket)
        }
        try #require(accepted == .accepted)
        try #require(producer.flush(timeout: .seconds(60)))
        var errors: [ErrorCode?] = []
        producer.poll(now: .current) { errors.append($1) }
        #expect(errors == [nil])
    }
}
