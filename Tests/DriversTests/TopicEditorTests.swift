// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import Rdkafka
import Testing

@Suite struct `Topic editor` {
    private let fixture: KafkaFixture
    private let editor: TopicEditor

    init() throws {
        fixture = try KafkaFixture(["registrations": 2])
        try Self.write("mine", "A", to: 1, fixture)
        try Self.write("other", "B", to: 1, fixture)
        editor = try TopicEditor(
            settings: fixture.settings(), topic: "registrations", logger: fixture.logger)
        try editor.readToEnd { _ in }
    }

    /// As its app does; nil removes.
    private static func write(
        _ key: String, _ value: String?, to partition: Int32, _ fixture: KafkaFixture
    ) throws {
        let producer = try fixture.producer(["registrations"])
        let accepted = Bytes(key).lend { key in
            guard let value else {
                return producer.produce(
                    topic: 0, partition: partition, key: key, value: nil, ticket: 1)
            }
            return Bytes(value).lend { value in
                producer.produce(
                    topic: 0, partition: partition, key: key, value: value, ticket: 1)
            }
        }
        try #require(accepted == .accepted && producer.flush(timeout: .seconds(10)))
    }

    private func change(_ value: String?) -> TopicEditor.Change {
        TopicEditor.Change(
            key: Array("mine".utf8), partition: 1, value: value.map { Array($0.utf8) })
    }

    /// What the log of partition 1 says, in order; a tombstone is "-".
    private func log() throws -> [String] {
        let reader = try fixture.reader(["registrations"])
        defer { reader.close(timeout: .seconds(5)) }
        var log: [String] = []
        while !reader.isCaughtUp {
            _ = reader.poll(now: .current, limit: 100) { record in
                let key = record.key.map { String(decoding: $0, as: UTF8.self) } ?? ""
                let value = record.value.map { String(decoding: $0, as: UTF8.self) } ?? "-"
                log.append("\(key)=\(value)@\(record.partition)")
            }
        }
        return log
    }

    @Test func `a change is written to its partition, and seen`() throws {
        var seen = 0
        try editor.write([change(nil)], { _ in seen += 1 }) { _, _ in
            Issue.record("nobody else has written")
            return nil
        }
        #expect(seen == 1)
        #expect(try log() == ["mine=A@1", "other=B@1", "mine=-@1"])
        editor.close()
    }

    @Test func `what somebody else wrote just before the change is written again`() throws {
        // Read by nobody here before the change is written.
        try Self.write("mine", "C", to: 1, fixture)
        try Self.write("other", "D", to: 1, fixture)
        try editor.write([change(nil)], { _ in }) { key, value in
            #expect(key == Array("mine".utf8) && value == Array("C".utf8))
            return .some(value)
        }
        #expect(try log().suffix(2) == ["mine=-@1", "mine=C@1"])
        editor.close()
    }

    @Test func `a removal just before the change may be done again, or the change stand`() throws {
        try Self.write("mine", nil, to: 1, fixture)
        try editor.write([change("E")], { _ in }) { _, value in .some(value) }
        #expect(try log().suffix(2) == ["mine=E@1", "mine=-@1"])
        try Self.write("mine", "F", to: 1, fixture)
        try editor.write([change(nil)], { _ in }) { _, _ in nil }
        #expect(try log().suffix(2) == ["mine=F@1", "mine=-@1"])
        editor.close()
    }
}
