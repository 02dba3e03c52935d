// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Delivery
import Intake
import PushModel
import Testing

@testable import Configuration
@testable import Worker

@Suite struct `A reloaded configuration` {
    private func changes(
        from old: String, to new: String, _ variables: [String: String] = [:]
    ) throws -> (adopted: Configuration, shown: [String], applied: [Bool]) {
        let old = try configuration(old, variables)
        let new = try configuration(new, variables)
        let adopted = old.adopting(new)
        let changes = old.changes(to: new, adopted: adopted)
        return (adopted, changes.map(\.description), changes.map(\.isApplied))
    }

    @Test func `a reload names what has changed, what is in force and what waits for a restart`()
        throws
    {
        let reload = try changes(
            from: "kafka: {group: one}\ndelivery: {attemptsMax: 10}\nlog: {level: info}",
            to: "kafka: {group: two}\ndelivery: {attemptsMax: 5, backoffMax: 60s}\n"
                + "log: {level: debug}")
        #expect(
            reload.shown == [
                "kafka.group: one -> two", "delivery.attemptsMax: 10 -> 5",
                "delivery.backoffMax: 15m -> 1m", "log.level: info -> debug",
            ])
        #expect(reload.applied == [false, true, true, true])
        #expect(reload.adopted.kafka.group == "one")
        #expect(reload.adopted.delivery.attemptsMax == 5)
        #expect(reload.adopted.delivery.backoff.most == .seconds(60))
        #expect(reload.adopted.log.level == .debug)
    }

    @Test func `a reload without a difference changes nothing`() throws {
        let reload = try changes(from: "log: {level: info}", to: "")
        #expect(reload.shown.isEmpty)
    }

    @Test func `a reload tells secrets apart without showing them`() throws {
        let reload = try changes(
            from: "kafka: {properties: {sasl.password: hunter2}}\n"
                + "apns: {proxy: \"http://user:hunter2@proxy:3128\"}",
            to: "kafka: {properties: {sasl.password: hunter3}}\n"
                + "apns: {proxy: \"http://user:hunter3@proxy:3128\"}")
        let hidden = Secret.placeholder
        #expect(
            reload.shown == [
                "kafka.properties[sasl.password]: \(hidden) -> \(hidden)",
                "apns.proxy: http://proxy:3128 -> http://proxy:3128",
            ])
        #expect(reload.applied == [false, false])
    }

    @Test func `a reload applies a topic's rules where the topics are the same`() throws {
        let old = "kafka: {events: {doors: {ttl: 1m}}}"
        let same = try changes(from: old, to: "kafka: {events: {doors: {ttl: 2m}}}")
        #expect(same.shown == ["kafka.events.doors.ttl: 1m -> 2m"])
        #expect(same.applied == [true])
        #expect(same.adopted.kafka.events["doors"]?.ttl == .seconds(120))

        let more = try changes(from: old, to: "kafka: {events: {doors: {ttl: 2m}, lamps: {}}}")
        #expect(more.shown.contains("kafka.events.lamps.decode: none -> json"))
        #expect(!more.applied.contains(true))
        #expect(more.adopted.kafka.events.keys.sorted() == ["doors"])
    }

    /// The ttl alone would be shorter than the delay that is still in force.
    @Test func `a reload applies nothing that does not go with what waits for a restart`() throws {
        let reload = try changes(
            from: "kafka: {events: {doors: {ttl: 60s, delay: 30s}}}",
            to: "kafka: {events: {doors: {ttl: 10s, delay: 5s}}}\nlog: {level: debug}")
        #expect(!reload.applied.contains(true))
        #expect(reload.adopted.log.level == .info)
    }

    @Test func `a reload names a key that waits for a restart again the next time`() throws {
        let old = try configuration("kafka: {group: one}")
        let new = try configuration("kafka: {group: two}\nlog: {level: debug}")
        let adopted = old.adopting(new)
        let again = adopted.changes(to: new, adopted: adopted.adopting(new))
        #expect(again.map(\.description) == ["kafka.group: one -> two"])
    }
}
