// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Configuration
@testable import Worker
@testable import lamplighter

@Suite struct `The keys of a topic binding` {
    /// What `lamplighter check` says of the event tests of a configuration.
    private static func failures(_ yaml: String) throws -> [String] {
        let configuration = try configuration(yaml)
        let plan = WorkerPlan(configuration)
        return configuration.kafka.eventTests.sorted { $0.key < $1.key }.flatMap { topic, tests in
            tests.flatMap { $0.failures(topic: topic, plan: plan, now: .init(milliseconds: 0)) }
        }
    }

    /// Those of its configurations that have tests.
    private static func configurationsOfThePage() throws -> [String] {
        let page = try Repository.text("docs/events.md")
        return page.split(separator: "```yaml\n").dropFirst().map {
            String($0.split(separator: "```")[0])
        }.filter { $0.contains("eventTests:") }
    }

    private static func examplesOfThePage() throws -> String {
        try #require(try configurationsOfThePage().first { $0.contains("shop.orders") })
    }

    @Test func `the examples of the page of events pass their own tests`() throws {
        let configurations = try Self.configurationsOfThePage()
        // One of each source, and those of the pages before.
        #expect(configurations.count == 10)
        for configuration in configurations { #expect(try Self.failures(configuration) == []) }
    }

    @Test(arguments: [
        ("in: [shipped, delivered]", "in: [delivered]", "outcome"),
        ("customer-{/customer/id}", "user-{/customer/id}", "subjects is"),
        ("type: integer, default: 0", "type: integer, default: 1", "payload is"),
        ("field: /state, changed: true", "field: /state, changed: false", "outcome"),
    ])
    func `a binding that does otherwise than its test expects is told`(
        part: String, other: String, words: String
    ) throws {
        let yaml = try Self.examplesOfThePage().replacing(part, with: other)
        let found = try Self.failures(yaml)
        #expect(
            !found.isEmpty && found.contains { $0.contains(words) || $0.contains("was expected") })
    }

    @Test(arguments: [
        ("when: [{field: status, equals: x}]", "condition without a field"),
        ("when: [{field: /status}]", "says nothing of /status"),
        ("when: [{field: /status, is: x}]", "has is, which says nothing"),
        ("when: [{field: /status, above: x}]", "above of /status is wrong; must be a number"),
        ("when: [{field: /status, in: x}]", "must be a list of 1 to 1000"),
        ("when: shipped", "must be a list of maps"),
        ("push: {payload: {aps: {alert: \"{x}\"}}}", "/aps/alert: 'x' is no JSON pointer"),
        ("push: {payload: [1]}", "a payload is a map"),
        ("push: {type: voip}", "push: a push of type voip needs a payload"),
        ("push: {priority: 5}", "without a payload or a type it says nothing"),
        ("push: {type: background, priority: 10}", "a background push has priority 5 or 1"),
        (
            "push: {payload: {door: \"{/id}\"}}",
            "push.payload: nothing says which type of push it is"
        ),
        (
            "push: {type: background, payload: {aps: {alert: x}}}",
            "push.payload: /aps/alert: a background push has none"
        ),
        (
            "push: {priority: 1, payload: {aps: {content-state: {}, event: end, timestamp: 1}}}",
            "push: priority: a Live Activity's push has priority 5 or 10"
        ),
        (
            "classes: [control]\n      push: {payload: {aps: {alert: x}}}",
            "classes: device is not among them"
        ),
        (
            "push: {payload: {aps: {alert: x, badge: {$field: /u, type: integer, default: many}}}}",
            "/aps/badge: the default \"many\" is not of type integer"
        ),
        (
            "push: {payload: {aps: {alert: \(String(repeating: "x", count: 5000))}}}",
            "push.payload: its constant parts have 50"
        ),
        (
            "installation: \"{/device}\"",
            "installation: the binding has a subject too, and an event names one of the two"
        ),
        ("kindsFrom: kind", "must be a field such as /order/id"),
        ("when: [{field: /status, changed: true}]", "say decode: debezium"),
    ])
    func `a mistake in a key of a topic binding is told with its place`(key: String, words: String)
        throws
    {
        let error = #expect(throws: InvalidConfiguration.self) {
            try configuration(
                """
                kafka:
                  events:
                    orders:
                      subject: "order-{/id}"
                      \(key)
                """)
        }
        #expect(
            error?.problems.contains { "\($0)".contains(words) && "\($0)".contains("orders") }
                == true,
            "\(String(describing: error))")
    }

    @Test func `a binding that names installations needs lists of those`() throws {
        let topic = #"kafka: {events: {codes: {installation: "{/device}"}}}"#
        let error = #expect(throws: InvalidConfiguration.self) { try configuration(topic) }
        #expect(
            error?.problems.contains {
                "\($0)".contains("installation") && "\($0)".contains("intake.allowInstallations")
            } == true)
        let allowed = try configuration(topic + "\nintake: {allowInstallations: true}")
        #expect(allowed.kafka.events["codes"]?.installation != nil)
    }

    @Test func `conditions and templates can be variables, in one line of YAML`() throws {
        let prefix = "LAMPLIGHTER_KAFKA_EVENTS_ORDERS_"
        let made = try configuration(
            "kafka: {events: {orders: {subject: \"o-{/id}\"}}}",
            [
                prefix + "WHEN": "[{field: /a, equals: 1}]",
                prefix + "PUSH_PAYLOAD": "{aps: {alert: \"{/text}\"}}",
            ])
        let written = try configuration(
            """
            kafka:
              events:
                orders:
                  subject: "o-{/id}"
                  when: [{field: /a, equals: 1}]
                  push: {payload: {aps: {alert: "{/text}"}}}
            """)
        #expect(made.kafka.events == written.kafka.events)
        #expect(made.kafka.events["orders"]?.conditions.count == 1)
    }

    @Test func `a number in quotes is text`() throws {
        func binding(_ value: String) throws -> [String] {
            try Self.failures(
                """
                kafka:
                  events:
                    orders: {subject: "o-{/id}", when: [{field: /a, equals: \(value)}]}
                  eventTests:
                    orders:
                      - {value: {id: 1, a: 5}, expect: {outcome: event}}
                """)
        }
        #expect(try binding("5") == [])
        #expect(try binding("5.0") == [])
        #expect(try binding("\"5\"").count == 1)
    }

    @Test(arguments: [
        ("{value: {id: 1}}", "expects nothing"),
        ("{value: {id: 1}, expect: {subject: x}}", "expects subject, which nobody looks at"),
        ("{valeu: {id: 1}, expect: {outcome: event}}", "has valeu, which a test has not"),
    ])
    func `a mistake in an event test is told`(test: String, words: String) {
        let error = #expect(throws: InvalidConfiguration.self) {
            try configuration(
                """
                kafka:
                  events: {orders: {subject: "o-{/id}"}}
                  eventTests: {orders: [\(test)]}
                """)
        }
        #expect(error?.problems.contains { "\($0)".contains(words) } == true)
    }
}
