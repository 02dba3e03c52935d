// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Former names of configuration keys` {
    private static let variable = "LAMPLIGHTER_KAFKA_TOPICS_CONTROLS"

    @Test func `a former key is read as that of today, and named to whoever wrote it`() throws {
        let read = try configuration("kafka: {topics: {controls: old.topic}}", [:])
        #expect(read.kafka.topics.restrictions == "old.topic")
        #expect(
            read.notices == [
                "kafka.topics.controls is called kafka.topics.restrictions now: rename it"
            ])
    }

    @Test func `so is a former variable`() throws {
        let read = try configuration("", [Self.variable: "old.topic"])
        #expect(read.kafka.topics.restrictions == "old.topic")
        #expect(
            read.notices == [
                "\(Self.variable) is called LAMPLIGHTER_KAFKA_TOPICS_RESTRICTIONS now: rename it"
            ])
    }

    @Test func `each former key leads to one that exists, and is none itself`() {
        let paths = Set(Configuration.shape.flatMap(\.values).map(\.path))
        for (former, key) in FormerKeys.all {
            #expect(paths.contains(key))
            #expect(!paths.contains(former))
        }
    }

    @Test func `a former key beside the key of today is a mistake`() {
        #expect(throws: InvalidConfiguration.self) {
            try configuration("kafka: {topics: {controls: old, restrictions: new}}", [:])
        }
    }

    @Test func `a variable of today wins over one of before`() throws {
        let read = try configuration(
            "",
            [
                Self.variable: "old", "LAMPLIGHTER_KAFKA_TOPICS_RESTRICTIONS": "new",
            ])
        #expect(read.kafka.topics.restrictions == "new")
    }

    @Test func `a configuration without them says nothing`() throws {
        #expect(try configuration("kafka: {topics: {restrictions: new}}", [:]).notices.isEmpty)
    }
}
