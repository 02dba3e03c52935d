// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import Logging
import Rdkafka
import Testing

@testable import KafkaLog

@Suite struct `Kafka settings` {
    private func settings(_ properties: [String: String]) -> KafkaClientSettings {
        KafkaClientSettings(bootstrap: "127.0.0.1:1", group: "fleet", properties: properties)
    }

    @Test func `a property that the library does not know is named`() {
        #expect(throws: KafkaError.unknownProperty("sesion.timeout.ms")) {
            try settings(["sesion.timeout.ms": "6000"]).validate()
        }
    }

    @Test func `a value that the library refuses is named with its property`() {
        let error = #expect(throws: KafkaError.self) {
            try settings(["session.timeout.ms": "soon"]).validate()
        }
        #expect(error?.description.contains("session.timeout.ms") == true)
    }

    @Test(arguments: [
        "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "group.id",
        "bootstrap.servers", "metadata.broker.list", "enable.idempotence", "acks",
        "enable.partition.eof",
    ])
    func `what would lose records or disagree with the configuration is refused`(name: String) {
        let error = #expect(throws: KafkaError.self) {
            try settings([name: "1"]).validate()
        }
        guard case .refusedProperty(name, let reason) = error else {
            Issue.record("\(name) was not refused: \(String(describing: error))")
            return
        }
        #expect(!reason.isEmpty)
    }

    @Test func `what no client may be given is refused where a client is made, unchecked or not`() {
        for role in KafkaClientSettings.Role.allCases {
            let error = #expect(throws: KafkaError.self) {
                _ = try settings(["plugin.library.paths": "theirs.so"]).configuration(for: role)
            }
            guard case .refusedProperty("plugin.library.paths", _) = error else {
                Issue.record("\(role): \(String(describing: error))")
                continue
            }
        }
    }

    @Test(arguments: [
        ([:], "10000"), (["group.instance.id": "registrar-0"], "30000"),
        (["session.timeout.ms": "6000"], "4000"), (["session.timeout.ms": "90000"], "60000"),
        (["message.timeout.ms": "30000"], "10000"), (["message.timeout.ms": "0"], "10000"),
        (["message.timeout.ms": "45000", "session.timeout.ms": "90000"], "45000"),
    ])
    func `where it is wanted a write is given up within two thirds of the session`(
        properties: [String: String], timeout: String
    ) throws {
        var settings = settings(properties)
        settings.boundsWaitsBySession = true
        let producer = try settings.configuration(for: .producer)
        #expect(producer.value(of: "message.timeout.ms") == timeout)
        try settings.validate()
    }

    @Test(arguments: [
        ([:], "30000"), (["session.timeout.ms": "90000"], "90000"),
        (["max.poll.interval.ms": "120000"], "120000"),
    ])
    func `where it is wanted a request to join is given up after half a minute or a session`(
        properties: [String: String], interval: String
    ) throws {
        var settings = settings(properties)
        settings.boundsWaitsBySession = true
        let consumer = try settings.configuration(for: .events)
        #expect(consumer.value(of: "max.poll.interval.ms") == interval)
        try settings.validate()
    }

    @Test func `a topic pattern is no topic`() throws {
        #expect(throws: KafkaError.missingTopic("^events")) {
            _ = try EventConsumer(
                settings: settings([:]), topics: ["^events"], startFrom: .latest,
                logger: Logger(label: "kafka"))
        }
    }

    @Test func `defaults hold until they are overridden, invariants always`() throws {
        let configuration = try settings(["fetch.wait.max.ms": "7"]).configuration(for: .events)
        let expected = [
            "fetch.wait.max.ms": "7", "auto.commit.interval.ms": "200",
            "partition.assignment.strategy": "range", "enable.partition.eof": "true",
            "enable.auto.offset.store": "false", "enable.auto.commit": "true",
            "auto.offset.reset": "error", "group.id": "fleet",
            // Apache Kafka allows no session of less than 6 s.
            "session.timeout.ms": "15000", "heartbeat.interval.ms": "1000",
        ]
        for (name, value) in expected { #expect(configuration.value(of: name) == value) }
        let named = try settings(["group.instance.id": "worker-0"]).configuration(for: .events)
        #expect(named.value(of: "session.timeout.ms") == "45000")
        let producer = try settings([:]).configuration(for: .producer)
        let produced = [
            "enable.idempotence": "true", "acks": "-1", "compression.codec": "lz4",
            "partitioner": "murmur2_random", "linger.ms": "5", "message.timeout.ms": "300000",
        ]
        for (name, value) in produced { #expect(producer.value(of: name) == value) }
    }

    @Test func `the producer of outcomes is bounded, whatever that of other records may do`()
        throws
    {
        let settings = settings([
            "queue.buffering.max.messages": "9000000", "message.timeout.ms": "0",
            "linger.ms": "500", "compression.codec": "zstd",
        ])
        let producer = try settings.configuration(for: .outcomes)
        let expected = [
            "message.timeout.ms": "30000", "linger.ms": "100", "enable.idempotence": "false",
            "queue.buffering.max.messages": "20000", "queue.buffering.max.kbytes": "16384",
            "partitioner": "murmur2_random", "compression.codec": "zstd",
            "allow.auto.create.topics": "false",
        ]
        for (name, value) in expected { #expect(producer.value(of: name) == value) }
        try settings.validate()
    }

    @Test func `a property goes before its default under either of its names`() throws {
        let producer = try settings([
            "compression.codec": "zstd", "delivery.timeout.ms": "60000",
            "queue.buffering.max.ms": "20",
        ]).configuration(for: .producer)
        #expect(producer.value(of: "compression.codec") == "zstd")
        #expect(producer.value(of: "message.timeout.ms") == "60000")
        #expect(producer.value(of: "linger.ms") == "20")
    }

    @Test func `secrets appear neither in errors nor in log lines`() throws {
        let secret = "hunter2-and-more"
        // An invalid value is quoted by the library; the password stands in for a mixed-up file.
        let mixedUp = settings(["sasl.password": secret, "session.timeout.ms": secret])
        let error = #expect(throws: KafkaError.self) { try mixedUp.validate() }
        #expect(error?.description.contains(secret) == false)

        let lines = Lines()
        let logger = Logger(label: "kafka", factory: { _ in RecordingHandler(lines: lines) })
        let fixture = try KafkaFixture(["events": 1])
        var properties = [
            "sasl.password": secret, "ssl.key.password": secret, "debug": "all",
        ]
        // The broker's name stands for any place a secret could turn up in.
        properties["client.id"] = "worker-\(secret)"
        let admin = try TopicAdmin(
            settings: KafkaClientSettings(
                bootstrap: fixture.kafka.bootstrap, group: "", properties: properties),
            logger: logger)
        _ = try admin.partitionCount(of: "events")
        #expect(lines.all.count > 10)
        #expect(lines.all.contains { $0.contains("[secret]") })
        #expect(!lines.all.contains { $0.contains(secret) })
    }

    @Test func `the key in a connection string of Event Hubs is redacted alone too`() {
        let whole =
            "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=listen;"
            + "SharedAccessKey=aGVsbG8="
        for password in [whole, whole + ";EntityPath=events"] {
            let filter = settings(["sasl.password": password]).secrets
            #expect(filter.redact("not \(password)!") == "not [secret]!")
            #expect(filter.redact("key aGVsbG8= of listen") == "key [secret] of listen")
        }
        let none = settings(["sasl.password": "SharedAccessKey=;a"]).secrets
        #expect(none.redact("nothing") == "nothing")
        let spaced = settings(["sasl.password": "Endpoint=sb://a/; SharedAccessKey=aGVsbG8= ;"])
        #expect(spaced.secrets.redact("key aGVsbG8=") == "key [secret]")
    }

    @Test(arguments: ["a+b/c=", "a%2Bb%2Fc%3D", "a%2bb%2fc%3d"])
    func `a signature is redacted alone, and a secret as a URL has it`(form: String) {
        for password in [
            "a+b/c=",
            "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=a+b/c=",
            "Endpoint=sb://x/;SharedAccessSignature=SharedAccessSignature "
                + "sr=sb%3A%2F%2Fx&sig=a%2Bb%2Fc%3D&se=1700000000&skn=n",
            "SharedAccessSignature sig=a%2bb%2fc%3d&sr=x",
        ] {
            let filter = settings(["sasl.password": password]).secrets
            #expect(filter.redact("not \(form)!") == "not [secret]!", "\(password)")
        }
    }

    @Test func `a secret that is cut at the end of a text is redacted, if enough of it is left`() {
        let filter = settings(["sasl.password": "hunter2-and-more"]).secrets
        #expect(filter.redact("not hunter2-and-more") == "not [secret]")
        #expect(filter.redact("not hunter2-and-mor") == "not [secret]")
        #expect(filter.redact("hunter2-") == "[secret]")
        #expect(filter.redact("not hunter2") == "not hunter2")
        #expect(filter.redact("not hunter2-and more") == "not hunter2-and more")
        #expect(filter.redact("Tür hunter2-hunter2-an") == "Tür hunter2-[secret]")
        #expect(filter.redact("hunter2-and-more hunter2-and") == "[secret] [secret]")
        #expect(filter.redact("") == "")
        let encoded = settings(["sasl.password": "aGVs+bG8/d29ybGQ="]).secrets
        #expect(encoded.redact("not aGVs%2BbG8%") == "not [secret]")
    }

    @Test(arguments: [
        (Int32(0), Logger.Level.critical), (2, .critical), (3, .error), (4, .warning), (5, .notice),
        (6, .info), (7, .debug),
    ])
    func `librdkafka's severities have the logger's levels`(severity: Int32, level: Logger.Level) {
        #expect(LibraryLog.level(severity: severity, facility: "FAIL") == level)
    }
}

@Suite struct `Embedded Kafka's commands` {
    @Test(arguments: [
        ("down 1", EmbeddedKafkaCommand.down(broker: 1)), ("up 2", .up(broker: 2)),
        ("rtt -1 250", .roundTrip(broker: -1, milliseconds: 250)),
        ("err 9 16 3", .fail(apiKey: 9, code: 16, count: 3)),
        ("err 0 -195 1", .fail(apiKey: 0, code: -195, count: 1)),
        ("leader events 3 -1", .leader(topic: "events", partition: 3, broker: -1)),
        ("  topic   events 3 ", .topic(name: "events", partitions: 3)),
        ("topicerr events 3", .topicError(name: "events", code: 3)), ("quit", .quit),
    ])
    func `a line becomes a command of the embedded Kafka`(
        line: String, command: EmbeddedKafkaCommand
    ) {
        #expect(EmbeddedKafkaCommand(parsing: line) == command)
    }

    @Test(arguments: [
        "", "down", "down one", "up 1 2", "rtt 1 -5", "err 9 16", "err 9 16 0", "err 9 16 100001",
        "topic events 0", "quit now", "explode",
    ])
    func `any other line is no command of the embedded Kafka`(line: String) {
        #expect(EmbeddedKafkaCommand(parsing: line) == nil)
    }

    @Test func `a topic made on demand has its partitions, and a broker that comes back serves`()
        throws
    {
        let fixture = try KafkaFixture([:], brokers: 2)
        #expect(fixture.kafka.bootstrap.split(separator: ",").count == 2)
        try fixture.kafka.perform(.topic(name: "events", partitions: 5))
        let admin = try TopicAdmin(
            settings: fixture.settings(), timeout: .seconds(10), logger: fixture.logger)
        #expect(try admin.partitionCount(of: "events") == 5)
        for broker in Int32(1)...2 { try fixture.kafka.perform(.down(broker: broker)) }
        for broker in Int32(1)...2 { try fixture.kafka.perform(.up(broker: broker)) }
        #expect(try admin.partitionCount(of: "events") == 5)
        #expect(throws: (any Error).self) { try fixture.kafka.perform(.down(broker: 9)) }
    }
}
