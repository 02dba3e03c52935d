// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Intake
import PushModel
import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Configuration environment variables` {
    @Test func `a variable wins over the file`() throws {
        let read = try configuration(
            "delivery: {threads: 2, shutdownTimeout: 5s}", ["LAMPLIGHTER_DELIVERY_THREADS": "3"])
        #expect(read.delivery.threads == 3)
        #expect(read.delivery.shutdownTimeout == .seconds(5))
    }

    @Test func `a name in the file is found, whatever letters it has`() throws {
        let read = try configuration(
            "kafka: {events: {App.door-events: {ttl: 1m}}}",
            ["LAMPLIGHTER_KAFKA_EVENTS_APP_DOOR_EVENTS_DECODE": "key"])
        #expect(read.kafka.events.keys.sorted() == ["App.door-events"])
        #expect(read.kafka.events["App.door-events"]?.decode == .key)
        #expect(read.kafka.events["App.door-events"]?.ttl == .seconds(60))
    }

    @Test func `a new name is made of the variable's`() throws {
        let read = try configuration(
            "",
            [
                "LAMPLIGHTER_KAFKA_EVENTS_APP_ORDERS_KINDS": "com.example.door, com.example.gate",
                "LAMPLIGHTER_KAFKA_PROPERTIES_SASL_PASSWORD": "hunter2",
                "LAMPLIGHTER_APNS_CREDENTIALS_MY_WORK_TEAM": "ABCDE12345",
                "LAMPLIGHTER_APNS_CREDENTIALS_MY_WORK_KEYID": "KLMNO12345",
                "LAMPLIGHTER_APNS_CREDENTIALS_MY_WORK_KEY": "text",
                "LAMPLIGHTER_APNS_CREDENTIALS_MY_WORK_APPS": "com.example.Work",
            ])
        #expect(
            read.kafka.events["app.orders"]?.kinds == ["com.example.door", "com.example.gate"])
        #expect(read.kafka.properties["sasl.password"]?.text == "hunter2")
        #expect(read.apns.credentials.keys.sorted() == ["home", "my-work"])
    }

    @Test func `each key has a variable, and only one key has it`() throws {
        let shape = Configuration.shape
        var seen: Set<String> = []
        for value in shape.flatMap(\.values) {
            let path = value.path.map { $0.hasPrefix("<") ? "some" : $0 }
            let variable = EnvironmentVariables.name(of: path)
            #expect(seen.insert(variable).inserted, "\(variable) stands for two keys")
            var settings = try Setting(yaml: "")
            let unknown = EnvironmentVariables(root: .section(shape))
                .apply([variable: "text"], to: &settings)
            #expect(unknown == [])
            let placed = path.reduce(settings as Setting?) { setting, name in
                setting?.entries?.first { $0.name == name }?.value
            }
            #expect(
                placed == Setting(content: .scalar("text"), origin: .variable(variable)),
                "\(variable) does not lead to \(path)")
        }
        #expect(seen.count > 80)
    }

    @Test func `an unknown variable names the nearest`() {
        #expect(
            problems(in: "", ["LAMPLIGHTER_DELIVERY_TREADS": "2"]) == [
                "LAMPLIGHTER_DELIVERY_TREADS: belongs to no key; "
                    + "the nearest known one is LAMPLIGHTER_DELIVERY_THREADS"
            ])
    }

    @Test func `a Service called lamplighter does no harm`() {
        #expect(
            problems(
                in: "",
                [
                    "LAMPLIGHTER_SERVICE_HOST": "10.0.0.1", "LAMPLIGHTER_SERVICE_PORT": "80",
                    "LAMPLIGHTER_SERVICE_PORT_HTTP": "80", "LAMPLIGHTER_PORT": "tcp://10.0.0.1:80",
                    "LAMPLIGHTER_PORT_80_TCP": "tcp://10.0.0.1:80",
                    "LAMPLIGHTER_PORT_80_TCP_ADDR": "10.0.0.1",
                    "LAMPLIGHTER_ADMIN_SERVICE_HOST": "10.0.0.2", "OTHER": "x",
                ]) == [])
    }
}
