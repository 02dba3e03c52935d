// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import KafkaLog
import Testing
import Worker

@Suite struct `Kafka properties` {
    private func problems(of property: String, _ value: String) -> [String] {
        AppTests.problems(in: "kafka: {properties: {\(property): \"\(value)\"}}")
    }

    @Test(arguments: [
        ("delivery.report.only.error", "true", "no record would ever be known to be safe"),
        ("partitioner", "random", "a key has to stay in its partition"),
        ("partitioner", "consistent_random", "must be murmur2_random or murmur2"),
        ("queuing.strategy", "lifo", "an older record of a key would be written after a newer"),
        ("enabled_events", "4", "would not be told of records and rebalances"),
        ("log.queue", "true", "nobody reads such a queue"),
        ("group.protocol", "share", "must be classic or consumer"),
        ("message.timeout.ms", "1", "must be 0 or from 30000 to 2147483647: a record that is"),
        ("delivery.timeout.ms", "1", "must be 0 or from 30000 to 2147483647: a record that is"),
        ("retries", "0", "set that instead"),
        ("message.send.max.retries", "0", "set that instead"),
        ("isolation.level", "read_uncommitted", "events of aborted transactions would be pushed"),
        ("offset.store.method", "file", "where no other worker finds them"),
        ("offset.store.method", "none", "where no other worker finds them"),
        ("auto.commit.interval.ms", "0", "0 commits only when the worker stops"),
        ("auto.commit.interval.ms", "86400000", "after a crash all pushes of this time"),
        ("max.poll.interval.ms", "1000", "must be from 30000 to 86400000"),
        ("queue.buffering.max.kbytes", "1", "the worker's largest records would never fit"),
        ("message.max.bytes", "1000", "the worker's own records would not fit"),
        ("linger.ms", "900000", "must be from 0 to 500"),
        ("queue.buffering.max.ms", "900000", "must be from 0 to 500"),
        ("topic.metadata.refresh.interval.ms", "-1", "added partitions are noticed only then"),
        ("topic.blacklist", "lamplighter.*", "a topic that it names would never be read"),
        ("allow.auto.create.topics", "true", "a misspelt topic would be created"),
        ("api.version.request", "false", "records would lose their headers"),
        ("reconnect.backoff.max.ms", "3600000", "a restarted broker is left unused"),
        ("enable.gapless.guarantee", "true", "the first record that is refused would end"),
        ("statistics.interval.ms", "100", "nobody reads the library's statistics"),
        ("internal.termination.signal", "15", "signals stop or reload the worker"),
        ("plugin.library.paths", "/tmp/x", "it would load foreign code"),
        ("stats_cb", "text", "it is not text but a pointer inside the program"),
        ("socket_cb", "text", "it is not text but a pointer inside the program"),
        ("default_topic_conf", "text", "it is not text but a pointer inside the program"),
    ])
    func `what would stop the worker without a word is refused with the reason`(
        property: String, value: String, reason: String
    ) {
        let found = problems(of: property, value)
        #expect(found.count == 1)
        #expect(found.first?.contains("\(property)") == true, "\(found)")
        #expect(found.first?.contains(reason) == true, "\(found)")
    }

    @Test(arguments: [
        ("sasl.jaas.config", "set sasl.username and sasl.password"),
        ("ssl.truststore.location", "set ssl.ca.location"),
        ("ssl.truststore.password", "leave it out"), ("ssl.keystore.type", "PKCS#12"),
        ("ssl.keystore.certificate.chain", "set ssl.certificate.pem"),
        ("sasl.client.callback.handler.class", "sasl.oauthbearer.method: oidc"),
        ("sasl.login.refresh.window.factor", "leave it out"),
        ("sasl.oauthbearer.jwks.endpoint.url", "it is for brokers"),
        ("key.deserializer", "kafka.events says how"),
        ("value.serializer", "kafka.events says how"),
        ("max.poll.records", "queued.max.messages.kbytes"),
        ("fetch.max.wait.ms", "set fetch.wait.max.ms"),
        ("schema.registry.url", "set kafka.schemaRegistry.urls"),
        ("basic.auth.user.info", "kafka.schemaRegistry.user"),
        ("schema.registry.ssl.truststore.location", "kafka.schemaRegistry.caFile"),
        ("specific.avro.reader", "leave it out"), ("buffer.memory", "queue.buffering.max.kbytes"),
        ("max.request.size", "set message.max.bytes"), ("metric.reporters", "Java's alone"),
        ("metrics.recording.level", "Java's alone"), ("ssl_cafile", "set ssl.ca.location"),
        ("sasl_plain_username", "set sasl.username"), ("bootstrap_servers", "set kafka.bootstrap"),
        ("spring.kafka.security.protocol", "without what Spring"),
    ])
    func `a property of another client is refused with what to write instead`(
        property: String, remedy: String
    ) {
        let isKnown = KafkaClientSettings.knownProperties.contains(property)
        // Newer libraries have this one, for consumers of another kind.
        #expect(!isKnown || property == "max.poll.records")
        if isKnown { return }
        let found = problems(of: property, "1")
        #expect(found.count == 1 && found[0].contains(remedy), "\(found)")
        #expect(found.first?.contains("is a property of other clients") == true)
    }

    /// Since 2.2 librdkafka has the one that is tried here.
    @Test func `a property that this librdkafka has is not said to be of other clients`() throws {
        let name = "client.dns.lookup"
        #expect(ForeignProperty.remedy(for: name, known: [name]) == nil)
        #expect(ForeignProperty.remedy(for: name, known: ["client.rack"]) != nil)
        let isKnown = KafkaClientSettings.knownProperties.contains(name)
        let found = try #require(problems(of: name, "neither").first)
        #expect(found.contains("is a property of other clients") == !isKnown, "\(found)")
        #expect(found.contains("is refused; Invalid value") == isKnown, "\(found)")
    }

    @Test(arguments: [
        ("sasl.mechanism", "AWS_MSK_IAM", "librdkafka has no AWS_MSK_IAM"),
        ("sasl.mechanisms", "AWS_MSK_IAM", "librdkafka has no AWS_MSK_IAM"),
        ("sasl.mechanism", "aws_msk_iam", "librdkafka has no AWS_MSK_IAM"),
        ("sasl.mechanism", "plain", "must be written in capitals: PLAIN"),
        ("sasl.mechanism", "Scram-Sha-512", "must be written in capitals: SCRAM-SHA-512"),
        (
            "partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor", "range is the default"
        ),
        ("partition.assignment.strategy", "CooperativeStickyAssignor", "range is the default"),
        ("partition.assignment.strategy", "RangeAssignor", "range is the default"),
    ])
    func `a value of another client's is refused with what to write instead`(
        property: String, value: String, remedy: String
    ) {
        let found = problems(of: property, value)
        #expect(found.count == 1 && found[0].contains(remedy), "\(found)")
    }

    /// What protects a password is never advised against.
    @Test(
        arguments: [
            ("SASL_SSL://a:9093", nil, "sasl_ssl"), ("SSL://a:9093", nil, "ssl"),
            ("SASL_SSL://a:9093,SASL_SSL://b:9093", nil, "sasl_ssl"),
            ("a:9092,SASL_PLAINTEXT://b:9092", nil, nil),
            ("PLAINTEXT://a:9092,SSL://b:9093", nil, nil), ("KAFKA://a:9092", nil, nil),
            ("PLAINTEXT://a:9092", "sasl_ssl", nil), ("SASL_SSL://a:9093", "SSL", nil),
            ("SASL_SSL://a:9093,PLAINTEXT://b:9092", "sasl_ssl", nil),
        ] as [(String, String?, String?)])
    func `a protocol before a broker that is not security.protocol's is told`(
        bootstrap: String, chosen: String?, proposed: String?
    ) {
        let user = "sasl.mechanism: PLAIN, sasl.username: u, sasl.password: p"
        let properties = user + (chosen.map { ", security.protocol: \($0)" } ?? "")
        let found = AppTests.problems(
            in: "kafka: {properties: {\(properties)}}",
            ["LAMPLIGHTER_KAFKA_BOOTSTRAP": bootstrap])
        let remedy =
            "write host:port alone"
            + (proposed.map { ", and kafka.properties: security.protocol: \($0)" } ?? "")
        #expect(found.count == 1 && found[0].hasSuffix(remedy), "\(found)")
        let current = chosen?.lowercased() ?? "plaintext"
        #expect(found.first?.contains("security.protocol is \(current)") == true, "\(found)")
    }

    @Test func `a user without SASL is warned of`() throws {
        func notices(_ properties: String) throws -> [String] {
            try configuration("kafka: {properties: {\(properties)}}").notices
        }
        #expect(
            try notices("sasl.username: u, sasl.password: p") == [
                "kafka.properties: sasl.username is set, and security.protocol is plaintext, the "
                    + "default: Kafka is told no user, and nothing is encrypted. Set "
                    + "security.protocol to sasl_ssl"
            ])
        #expect(
            try notices("sasl.mechanism: PLAIN, security.protocol: ssl").first?.contains(
                "security.protocol is ssl: Kafka is told no user. Set") == true)
        #expect(
            try notices(
                "sasl.username: u, sasl.password: p, sasl.mechanism: PLAIN, "
                    + "security.protocol: SASL_SSL"
            ).isEmpty)
        #expect(try notices("security.protocol: plaintext").isEmpty)
        #expect(try configuration("").notices.isEmpty)
    }

    /// The page before the rows of the table of other clients' names, the rows, and what follows.
    private func parts(_ page: String) throws -> (before: String, rows: String, after: String) {
        let head = try #require(page.range(of: "| property | do |\n|---|---|\n"))
        let lines = page[head.upperBound...].split(
            separator: "\n", omittingEmptySubsequences: false)
        let rows = lines.prefix { $0.hasPrefix("|") }
        return (
            String(page[..<head.upperBound]), rows.map { "\($0)\n" }.joined(),
            lines.dropFirst(rows.count).joined(separator: "\n")
        )
    }

    @Test func `what follows the table on the page is no part of it`() throws {
        let head = "# Page\n\n| property | do |\n|---|---|\n"
        for after in ["", "\n## More\n\n| a | b |\n"] {
            let page = try parts(head + "| `x` | y |\n" + after)
            #expect(page.before == head && page.rows == "| `x` | y |\n" && page.after == after)
        }
    }

    /// `make docs` runs this test with `WRITE_DOCS`, and the table is rewritten.
    @Test func `names of other clients on the page are what their table says`() throws {
        let url = Repository.root.appending(path: "docs/kafka.md")
        let rows = ForeignProperty.table.map { row in
            "| \(row.names.map { "`\($0)`" }.joined(separator: ", ")) | \(row.remedy) |\n"
        }.joined()
        let page = try parts(Repository.text("docs/kafka.md"))
        if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
            try (page.before + rows + page.after).write(to: url, atomically: true, encoding: .utf8)
        } else {
            #expect(page.rows == rows, "run `make docs`")
        }
    }

    /// Files of examples do not exist here.
    @Test(arguments: [("docs/kafka.md", 7), ("README.md", 1)])
    func `the examples of a page are configurations`(path: String, count: Int) throws {
        let page = try Repository.text(path)
        let examples = page.split(separator: "```yaml\n").dropFirst().map {
            String($0.split(separator: "```")[0])
        }
        #expect(examples.count == count)
        for example in examples {
            var missing = ["KAFKA_BOOTSTRAP"]
            if example.contains("apns:") {
                missing += ["TEAM", "KEYID", "KEY", "APPS"].map { "APNS_CREDENTIALS_HOME_\($0)" }
            }
            let found = AppTests.problems(in: example, without: missing).filter {
                !$0.contains("does not exist") && !$0.contains("passwordFile")
            }
            #expect(found == [], "\(example)")
        }
    }

    @Test(arguments: [
        ("delivery.report.only.error", "false"), ("partitioner", "murmur2"),
        ("isolation.level", "read_committed"), ("queuing.strategy", "FIFO"),
        ("log.queue", "0"), ("message.timeout.ms", "0"), ("message.timeout.ms", "120000"),
        ("statistics.interval.ms", "0"), ("auto.commit.interval.ms", "1000"),
        ("queue.buffering.max.kbytes", "1048576"), ("debug", "cgrp,broker"),
        ("session.timeout.ms", "30000"), ("session.timeout.ms", "6000"),
        ("client.rack", "eu-1a"),
    ])
    func `a Kafka property that the worker can live with is not refused`(
        property: String, value: String
    ) {
        #expect(problems(of: property, value) == [])
    }

    @Test(arguments: [
        (
            "session.timeout.ms: 6000, heartbeat.interval.ms: 3000",
            "heartbeat.interval.ms is 3000, more than a third of session.timeout.ms, which is 6000; "
                + "set it to 2000 at most"
        ),
        (
            "max.poll.interval.ms: 40000, session.timeout.ms: 45000",
            "`max.poll.interval.ms`must be >= `session.timeout.ms`"
        ),
        (
            "fetch.max.bytes: 1000",
            "`fetch.max.bytes` must be >= `message.max.bytes`"
        ),
        (
            "security.protocol: ssl, ssl.ca.location: /etc/passwd",
            "ssl.ca.location failed"
        ),
    ])
    func `what only the library's clients would notice is refused before there are any`(
        properties: String, reason: String
    ) {
        let found = AppTests.problems(in: "kafka: {properties: {\(properties)}}")
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("kafka.properties: are not usable together; ") == true,
            "\(found)")
        #expect(found.first?.contains(reason) == true, "\(found)")
    }

    @Test(arguments: [
        "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
        "ssl.keystore.location",
    ])
    func `a file that is not there is named with its property`(property: String) {
        func found(_ path: String, security: String = "SASL_SSL") -> [String] {
            AppTests.problems(
                in: "kafka: {properties: {security.protocol: \(security), \(property): \(path)}}")
        }
        #expect(
            found("/nowhere.pem") == [
                "kafka.properties[\(property)]: is /nowhere.pem, which cannot be read: it does not "
                    + "exist; name a file, best by its whole path"
            ])
        let isAuthorities = property == "ssl.ca.location"
        #expect(
            found("/etc").contains { $0.contains("it is a folder") } == !isAuthorities)
        #expect(!found("probe").contains { $0.contains("exist") } == isAuthorities)
        // Nothing looks at them there.
        #expect(
            !found("/nowhere.pem", security: "plaintext").contains { $0.contains("be read") })
    }

    @Test func `a property may not be set under both of its names`() {
        let found = AppTests.problems(
            in: "kafka: {properties: {delivery.timeout.ms: 60000, message.timeout.ms: 60000}}")
        #expect(
            found == [
                "kafka.properties[delivery.timeout.ms]: cannot be set; "
                    + "it is another name of message.timeout.ms"
            ])
    }
}
