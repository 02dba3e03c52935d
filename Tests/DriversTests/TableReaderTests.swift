// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import LinuxIO
import PushModel
import Rdkafka
import Testing

@Suite struct `Table reader` {
    @Test func `a table is caught up when every partition has ended and then follows`() async throws
    {
        let fixture = try KafkaFixture(["registrations": 3, "suppressions": 1])
        try fixture.write(1000, to: "registrations", partition: 0)
        try fixture.write(10, to: "registrations", partition: 2)
        let reader = try fixture.reader(["registrations", "suppressions"])
        var seen: [Int: Int] = [:]
        #expect(!reader.isCaughtUp)
        try await waitUntil("the end") {
            reader.clearWakeUp()
            _ = reader.poll(now: .current, limit: 100) { seen[$0.topic, default: 0] += 1 }
            return reader.isCaughtUp
        }
        #expect(seen == [0: 1010])
        #expect(reader.recordsRead == 1010)
        let progress = reader.progress(topic: 0)
        #expect(progress.partitions == 3 && progress.caughtUp == 3 && progress.remaining == 0)

        try await waitUntil("silence") {
            reader.clearWakeUp()
            return reader.poll(now: .current, limit: 100) { _ in } == 0
                && !isReadable(reader.wakeDescriptor)
        }
        try fixture.write(5, to: "suppressions")
        try await waitUntil("a wake-up") { isReadable(reader.wakeDescriptor) }
        try await waitUntil("the live records") {
            _ = reader.poll(now: .current, limit: 100) { seen[$0.topic, default: 0] += 1 }
            return seen[1] == 5
        }
        #expect(reader.isCaughtUp)
        #expect(reader.close(timeout: .seconds(5)))
    }

    @Test func `a table is behind as long as one partition has not come to its end`() async throws {
        let fixture = try KafkaFixture(["registrations": 2])
        // Nobody leads the second, so it gives nothing.
        try fixture.kafka.perform(.leader(topic: "registrations", partition: 1, broker: -1))
        let reader = try fixture.reader(["registrations"])
        var looked = 0
        func look() { looked += reader.poll(now: .current, limit: 100) { _ in } }
        try await waitUntil("the end of the first") {
            look()
            return reader.progress(topic: 0).caughtUp == 1
        }
        #expect(!reader.isCaughtUp)
        try fixture.write(1, to: "registrations")
        // An end, the record, and the end again.
        try await waitUntil("the second end of the first") {
            look()
            return looked >= 3
        }
        #expect(!reader.isCaughtUp && reader.recordsRead == 1)
        try fixture.kafka.perform(.leader(topic: "registrations", partition: 1, broker: 1))
        try await waitUntil("the end of the second") {
            look()
            return reader.isCaughtUp
        }
        #expect(reader.progress(topic: 0).caughtUp == 2)
        reader.close(timeout: .seconds(5))
    }

    /// - Parameter limit: a turn is full before the queue is empty, or the other way round.
    @Test(arguments: [10, 1000])
    func `a queue that is full does not stop the fetches for a second`(limit: Int) async throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let batches = 20
        for batch in 0..<batches {
            try fixture.write(100, from: 100 * batch, to: "registrations")
        }
        // One batch fills it.
        let reader = try fixture.reader(
            ["registrations"], properties: ["queued.min.messages": "100"])
        let epoll = try Epoll()
        try epoll.add(reader.wakeDescriptor, for: .read, tag: 0)
        var standstills = Standstills()
        while !reader.isCaughtUp, standstills.count < batches {
            reader.clearWakeUp()
            while reader.poll(now: .current, limit: limit, { _ in standstills.moved() }) == limit {}
            // As a thread does that sleeps until there is something to do.
            let wait = reader.nextLook.map { max(.zero, $0 - Now.current.monotonic) }
            _ = epoll.wait(timeout: min(.seconds(1), wait ?? .seconds(1)))
        }
        #expect(reader.recordsRead == 2000 && standstills.count < batches / 4)
        reader.close(timeout: .seconds(5))
    }

    @Test func `messages may be larger than a fetch is`() throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let reader = try fixture.reader(
            ["registrations"], properties: ["message.max.bytes": "20000000"])
        reader.close(timeout: .seconds(5))
    }

    @Test func `a log that has lost what was to be read next is a failure`() async throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let reader = try fixture.reader(["registrations"])
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.isCaughtUp
        }
        #expect(reader.failure == nil)
        // OFFSET_OUT_OF_RANGE on Fetch.
        try fixture.kafka.perform(.fail(apiKey: 1, code: 1, count: 1))
        try await waitUntil("the failure") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.failure != nil
        }
        #expect(reader.failure?.code == .autoOffsetReset)
        reader.close(timeout: .seconds(5))
    }

    @Test func `a right to read that is lost is told with its topic until it is back`() async throws
    {
        let fixture = try KafkaFixture(["registrations": 1, "suppressions": 1])
        let reader = try fixture.reader(["registrations", "suppressions"])
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.isCaughtUp
        }
        _ = reader.takeWarnings()
        // A clock of its own: half a minute passes with each look.
        var now = Now.current
        func warnings() -> [String] {
            _ = reader.poll(now: now, limit: 100) { _ in }
            now.monotonic = now.monotonic + .seconds(31)
            return reader.takeWarnings().map(\.text).filter { $0.contains("may not read") }
        }
        // TOPIC_AUTHORIZATION_FAILED on Fetch; one answer is both topics'.
        try fixture.kafka.perform(.fail(apiKey: 1, code: 29, count: 100_000))
        try await waitUntil("the first warning") {
            let said = warnings()
            return said.contains { $0.contains("'registrations'") }
        }
        // The embedded Kafka's refusal carries the end of the log, a broker's does not. A reader
        // that stands at the end would take that for an answer, so it must not stand there.
        for topic in ["registrations", "suppressions"] { try fixture.write(1, to: topic) }
        for count in 1...3 {
            try await waitUntil("the warning again, \(count) of 3") {
                warnings().contains { $0.contains("'registrations' (1 of 1 partitions)") }
            }
        }
        #expect(reader.failure == nil)
    }

    @Test func `a right to read that is given back is told of no more`() async throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let reader = try fixture.reader(
            ["registrations"], properties: ["fetch.error.backoff.ms": "20"])
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.isCaughtUp
        }
        try fixture.kafka.perform(.fail(apiKey: 1, code: 29, count: 3))
        var now = Now.current
        func isRefused() async throws -> Bool {
            // Time for an answer or two, and then another half minute of the reader's.
            for _ in 0..<60 {
                _ = reader.poll(now: now, limit: 100) { _ in }
                try await Task.sleep(for: .milliseconds(5))
            }
            now.monotonic = now.monotonic + .seconds(31)
            return reader.takeWarnings().contains { $0.text.contains("may not read") }
        }
        var refusals = 0
        // Nothing is written meanwhile: only the end comes, once more.
        for _ in 0..<12 where try await isRefused() { refusals += 1 }
        #expect(refusals > 0)
        #expect(try await !isRefused())
        try fixture.write(2, to: "registrations")
        try await waitUntil("the records") {
            _ = reader.poll(now: now, limit: 100) { _ in }
            return reader.recordsRead == 2
        }
        #expect(reader.recordsRead == 2)
    }

    @Test func `null and empty are told apart in values and keys`() async throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let producer = try fixture.producer(["registrations"])
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        try #require(
            producer.produce(topic: 0, key: empty, value: nil, ticket: 1) == .accepted)
        try #require(
            producer.produce(topic: 0, key: nil, value: empty, ticket: 2) == .accepted)
        try #require(producer.flush(timeout: .seconds(5)))
        let reader = try fixture.reader(["registrations"])
        var seen: [String] = []
        try await waitUntil("both") {
            _ = reader.poll(now: .current, limit: 10) { record in
                let key = record.key.map { "\($0.count)" } ?? "null"
                let value = record.value.map { "\($0.count)" } ?? "null"
                seen.append("\(key)=\(value)")
            }
            return reader.isCaughtUp
        }
        #expect(seen == ["0=null", "null=0"])
        reader.close(timeout: .seconds(5))
    }

    @Test func `a partition without a leader grows old, with the cause, until it has one again`()
        async throws
    {
        let fixture = try KafkaFixture(["registrations": 2])
        let reader = try fixture.reader(["registrations"])
        var now = Now.current
        func look() {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            reader.watch(now: now)
        }
        try await waitUntil("the ends, and that they are known") {
            look()
            return reader.isCaughtUp && reader.age(topic: 0, now: now) < .seconds(1)
        }
        now.monotonic = now.monotonic + .seconds(100)
        try await waitUntil("an answer to a new question") {
            look()
            return reader.lags(now: now).isEmpty
        }
        try fixture.kafka.perform(.leader(topic: "registrations", partition: 1, broker: -1))
        now.monotonic = now.monotonic + .seconds(100)
        try await waitUntil("a failure of the second alone") {
            look()
            let lags = reader.lags(now: now)
            return lags.map(\.partition) == [TablePartition(topic: 0, number: 1)]
                && lags.allSatisfy { $0.cause != nil && $0.age >= .seconds(100) }
        }
        try fixture.kafka.perform(.leader(topic: "registrations", partition: 1, broker: 1))
        try await waitUntil("its end") {
            look()
            return reader.lags(now: now).isEmpty
        }
        reader.close(timeout: .seconds(5))
    }

    @Test func `records that are not read make a table old, however well its ends are known`()
        async throws
    {
        let fixture = try KafkaFixture(["registrations": 1])
        let reader = try fixture.reader(["registrations"])
        var now = Now.current
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.isCaughtUp
        }
        try fixture.write(7, to: "registrations")
        now.monotonic = now.monotonic + .seconds(100)
        try await waitUntil("the new end") {
            reader.watch(now: now)
            return reader.lags(now: now).map(\.unread) == [7]
        }
        try await waitUntil("the records") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            reader.watch(now: now)
            return reader.lags(now: now).isEmpty
        }
        reader.close(timeout: .seconds(5))
    }

    @Test func `a Kafka that is away is known before the tables are old`() async throws {
        let fixture = try KafkaFixture(["registrations": 1])
        let reader = try fixture.reader(["registrations"])
        func look() {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            reader.watch(now: .current)
        }
        try await waitUntil("the end") {
            look()
            return reader.isCaughtUp && !reader.isUnanswered
        }
        try fixture.kafka.perform(.down(broker: 1))
        try await waitUntil("a request without an answer") {
            look()
            return reader.isUnanswered
        }
        try fixture.kafka.perform(.up(broker: 1))
        try await waitUntil("an answer") {
            look()
            return !reader.isUnanswered
        }
        reader.close(timeout: .seconds(5))
    }

    @Test func `a missing topic is an error that names it, and at once`() throws {
        let fixture = try KafkaFixture(["registrations": 1])
        try fixture.kafka.perform(.topicError(name: "suppressions", code: 3))
        let stopwatch = Stopwatch()
        #expect(throws: KafkaError.missingTopic("suppressions")) {
            try fixture.reader(["registrations", "suppressions"])
        }
        #expect(stopwatch.time < .seconds(10))
    }

    @Test func `no broker is an error within the time given`() throws {
        let fixture = try KafkaFixture(["registrations": 1])
        try fixture.kafka.perform(.down(broker: 1))
        let stopwatch = Stopwatch()
        let error = #expect(throws: KafkaError.self) {
            try fixture.reader(["registrations"], timeout: .milliseconds(500))
        }
        #expect(error?.description.contains("does not answer") == true)
        #expect(stopwatch.time < .seconds(5))
    }
}
