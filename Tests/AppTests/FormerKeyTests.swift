// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Configuration
@testable import Worker

@Suite struct `Former names of configuration keys` {
    @Test func `each former key is read as that of today, and named to whoever wrote it`() throws {
        let read = try configuration(
            "index: {settle: 7s}", ["LAMPLIGHTER_KAFKA_TOPICS_VERDICTS": "old.verdicts"])
        #expect(read.index.registrationGrace == .seconds(7))
        #expect(read.kafka.topics.suppressions == "old.verdicts")
        #expect(
            read.notices == [
                "index.settle is called index.registrationGrace now: rename it",
                "LAMPLIGHTER_KAFKA_TOPICS_VERDICTS is called LAMPLIGHTER_KAFKA_TOPICS_SUPPRESSIONS "
                    + "now: rename it",
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
            try configuration("index: {settle: 7s, registrationGrace: 2s}", [:])
        }
    }

    @Test func `a variable of today wins over one of before`() throws {
        let read = try configuration(
            "",
            [
                "LAMPLIGHTER_INDEX_SETTLE": "7s", "LAMPLIGHTER_INDEX_REGISTRATIONGRACE": "3s",
            ])
        #expect(read.index.registrationGrace == .seconds(3))
    }

    @Test func `a configuration without them says nothing`() throws {
        #expect(try configuration("index: {registrationGrace: 3s}", [:]).notices.isEmpty)
    }
}
