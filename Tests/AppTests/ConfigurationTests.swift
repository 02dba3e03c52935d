// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Delivery
import Intake
import KafkaLog
import PushModel
import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Configuration file` {
    @Test func `maps, lists, durations and sizes are read into their types`() throws {
        let read = try configuration(
            """
            kafka:
              group: home
              events:
                orders: {decode: json, subject: "order-{/orderId}", kinds: [a, b], ttl: 90s}
                doors: {decode: key, classes: [control, widget], delay: 250ms}
              startFrom: latest
              skip: [orders/3/1200]
              properties:
                security.protocol: SASL_SSL
                # Not every librdkafka has GSSAPI, the default.
                sasl.mechanism: SCRAM-SHA-512
                sasl.username: lamplighter
                sasl.password: secret
                queued.max.messages.kbytes: 65536
            intake: {recordBytesMax: 64KiB}
            apns:
              endpoints: {development: {host: localhost, port: 2197}}
              transport: curl
            planning: {wire: {widgets: {priority: none, expiration: deadline}}}
            delivery: {guard: {badShareMax: 0.25}, queuedMax: 30000}
            """)
        #expect(read.kafka.group == "home")
        #expect(read.kafka.events["orders"]?.subject?.text == "order-{/orderId}")
        #expect(read.kafka.events["orders"]?.kinds == ["a", "b"])
        #expect(read.kafka.events["orders"]?.ttl == .seconds(90))
        #expect(read.kafka.events["doors"]?.decode == .key)
        #expect(
            read.kafka.events["doors"]?.classes
                == [TokenClassSet(.control), TokenClassSet(.widget)])
        #expect(read.kafka.events["doors"]?.delay == .milliseconds(250))
        #expect(read.kafka.events.count == 2)
        #expect(read.kafka.startFrom == .latest)
        #expect(
            read.kafka.skip == [.init(topic: "orders", partition: 3, offset: 1200)])
        #expect(read.kafka.properties["security.protocol"]?.text == "SASL_SSL")
        #expect(read.kafka.properties["queued.max.messages.kbytes"]?.text == "65536")
        #expect(read.intake.recordBytesMax == 65_536)
        #expect(read.apns.endpoints[.development].host == "localhost")
        #expect(read.apns.endpoints[.development].port == 2197)
        #expect(read.apns.endpoints[.production].host == "api.push.apple.com")
        #expect(read.apns.transport == .curl)
        #expect(read.planning.wire[.widgets].priority == nil)
        #expect(read.planning.wire[.widgets].expiration == .deadline)
        #expect(read.planning.wire[.controls].priority == 10)
        #expect(read.delivery.tokenGuard.badShareMax == 0.25)
        #expect(read.delivery.queuedMax == 30_000)
    }

    @Test(arguments: [
        ("500ms", Duration.milliseconds(500)), ("30s", .seconds(30)), ("10m", .seconds(600)),
        ("24h", .seconds(86_400)), ("7d", .seconds(604_800)), ("0s", .zero),
    ])
    func `a duration is a whole number and a unit`(text: String, duration: Duration) throws {
        let read = try configuration("kafka: {startFrom: \(text)}")
        #expect(read.kafka.startFrom == .ago(duration))
    }

    @Test func `a group that has committed nothing starts so far back as a push is worth`() throws {
        #expect(try configuration("").startFrom == .ago(.seconds(86_400)))
        let long = try configuration(
            "planning: {ttl: 2h, payloadTTL: 3h}\nkafka: {events: {a: {ttl: 1h}, b: {}}}")
        #expect(long.startFrom == .ago(.seconds(3 * 3600)))
        let short = try configuration("kafka: {events: {a: {ttl: 1h}, b: {ttl: 2h}}}")
        #expect(short.startFrom == .ago(.seconds(2 * 3600)))
        let chosen = try configuration("kafka: {startFrom: latest}")
        #expect(chosen.startFrom == .latest)
    }

    @Test(arguments: ["30", "1.5h", "-1s", "1 h", "1h30m", "99999999999999999999h", "s", "h1"])
    func `any other text is no duration`(text: String) {
        #expect(
            problems(in: "planning: {ttl: \"\(text)\"}") == [
                "planning.ttl (line 1): is \"\(text)\"; must be a duration from 1s to 30d, "
                    + "written as a whole number and one of ms, s, m, h, d"
            ])
    }

    @Test func `an empty value is the same as leaving the key out`() throws {
        let read = try configuration(
            "kafka: {group: ~, events: {doors: }}\ndelivery:\nlog: {level: null}")
        #expect(read.kafka.group == "lamplighter")
        #expect(read.kafka.events == ["doors": .standard])
        #expect(read.delivery.threads == 1)
        #expect(read.log.level == .info)
    }

    @Test func `sandbox is another word for development`() throws {
        let read = try configuration(
            "", ["LAMPLIGHTER_APNS_CREDENTIALS_HOME_ENVIRONMENTS": "sandbox"])
        #expect(read.apns.credentials["home"]?.environments == [.development])
        #expect(read.apns.credential(for: "com.example.Home", in: .development)?.name == "home")
        #expect(read.apns.credential(for: "com.example.Home", in: .production) == nil)
    }

    @Test func `auto takes curl only for a proxy`() throws {
        #expect(try configuration("").apns.chosenTransport == .nghttp2)
        #expect(
            try configuration("apns: {proxy: \"http://proxy:3128\"}").apns.chosenTransport == .curl)
        #expect(try configuration("apns: {transport: curl}").apns.chosenTransport == .curl)
    }

    @Test func `the configuration in force can be printed, without its secrets`() throws {
        let read = try configuration(
            """
            kafka: {properties: {sasl.password: hunter2, sasl.mechanism: PLAIN}}
            apns: {proxy: "http://user:swordfish@proxy:3128"}
            """)
        var dumped = ""
        dump(read, to: &dumped)
        for secret in ["hunter2", "swordfish", "BEGIN PRIVATE KEY"] {
            #expect(!read.description.contains(secret))
            #expect(!dumped.contains(secret))
        }
        #expect(read.description.contains("kafka.properties[sasl.mechanism]: PLAIN"))
        #expect(read.description.contains("kafka.properties[sasl.password]: (set, not shown)"))
        #expect(read.description.contains("apns.credentials.home.key: (set, not shown)"))
        #expect(read.description.contains("apns.proxy: http://proxy:3128"))
        #expect(read.apns.credentials["home"]?.key?.text == "-----BEGIN PRIVATE KEY-----")
    }
}
