// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import PushModel
import Rdkafka
import Testing

/// Another partitioner than Kafka's own puts one key's records into two partitions.
@Suite struct `Misplaced records` {
    /// Of Apache Kafka's own test, `UtilsTest.testMurmur2`.
    @Test(
        arguments: [
            ("21", -973_932_308), ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
        ] as [(String, Int32)])
    func `a key is misplaced as measured by Apache's murmur2`(key: String, hash: Int32) {
        let positive = hash & .max
        for partitions in [1, 2, 7, 12, 1000, .max] as [Int32] {
            #expect(KeyPartitioner.murmur2(key.utf8, of: partitions) == positive % partitions)
        }
    }

    @Test func `misplaced records are counted by topic, with the place of the last`() async throws {
        let fixture = try KafkaFixture(["registrations": 4, "suppressions": 4])
        let keys = (0..<200).map { "production/com.example.Home/device-\($0)/Controls" }
        // No partitioner is set, as by kcat and by clients made of librdkafka: CRC32.
        try write(keys, to: "registrations", [:], fixture)
        try write(keys, to: "suppressions", ["partitioner": "murmur2_random"], fixture)
        let reader = try fixture.reader(["registrations", "suppressions"])
        defer { reader.close(timeout: .seconds(5)) }
        var wrong: [(partition: Int32, offset: Int64, home: Int32)] = []
        try await waitUntil("both topics") {
            reader.clearWakeUp()
            _ = reader.poll(now: .current, limit: 1000) { record in
                let home = KeyPartitioner.murmur2(Array(record.key!), of: 4)
                guard record.topic == 0, home != record.partition else { return }
                wrong.append((record.partition, record.offset, home))
            }
            return reader.isCaughtUp
        }
        #expect(reader.recordsRead == 400)
        let counted = reader.misplaced[0]
        // Two good hashes agree on a quarter of the keys.
        #expect(counted.count == wrong.count && counted.count > 100)
        let last = try #require(wrong.last)
        #expect(counted.partition == last.partition && counted.offset == last.offset)
        #expect(counted.belongsIn == last.home)
        #expect(reader.misplaced[1] == MisplacedRecords(topic: "suppressions"))
    }

    private func write(
        _ keys: [String], to name: String, _ properties: [String: String],
        _ fixture: KafkaFixture
    ) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", fixture.kafka.bootstrap)
        for (name, value) in properties { try configuration.set(name, value) }
        let client = try Client(.producer, configuration: configuration) { _, _, _ in }
        let topic = try Topic(name, of: client)
        for key in keys {
            try Array(key.utf8).withUnsafeBytes { key in
                try client.produce(
                    to: topic, partition: Client.anyPartition, key: key, value: key, headers: nil,
                    ticket: 0)
            }
        }
        try #require(client.flush(timeout: .seconds(10)))
    }
}
