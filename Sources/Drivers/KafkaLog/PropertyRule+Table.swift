// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension PropertyRule {
    /// The rules by preferred name. Values that librdkafka 2.0.2 itself refuses are not repeated
    /// here.
    static let table: [String: PropertyRule] =
        connections.merging(consuming) { $1 }.merging(producing) { $1 }

    private static let connections: [String: PropertyRule] = [
        "bootstrap.servers": .reserved("set kafka.bootstrap instead"),
        "enabled_events": .reserved("the worker would not be told of records and rebalances"),
        "log.queue": .only(
            "false", because: "nobody reads such a queue: the library's warnings would fill it"),
        "statistics.interval.ms": .only(
            "0", because: "nobody reads the library's statistics; they would only cost time"),
        "internal.termination.signal": .reserved("signals stop or reload the worker"),
        "plugin.library.paths": .reserved("it would load foreign code into the worker"),
        "topic.blacklist": .reserved("a topic that it names would never be read"),
        "allow.auto.create.topics": .only(
            "false", because: "a misspelt topic would be created and read instead"),
        // Without version requests librdkafka takes the broker for version 0.10.
        "api.version.request": .only(
            "true", because: "records would lose their headers, and idempotence would not work"),
        "api.version.fallback.ms": .only(
            "0", because: "after one failed request records would lose their headers"),
        "topic.metadata.refresh.interval.ms": .within(
            1000...3_600_000, because: "added partitions are noticed only then"),
        "socket.timeout.ms": .within(
            1000...300_000, because: "a slow broker would be given up again and again"),
        "socket.max.fails": .within(
            1...10, because: "a dead connection would be kept for ever"),
        "reconnect.backoff.ms": .within(
            0...60_000, because: "a restarted broker is left unused for this long"),
        "reconnect.backoff.max.ms": .within(
            0...60_000, because: "a restarted broker is left unused for this long"),
        "retry.backoff.ms": .within(
            1...10_000, because: "every request that a broker defers waits for this long"),
        "max.in.flight.requests.per.connection": .within(
            1...5, because: "idempotence keeps the order of no more requests"),
        // Deferred pushes and dead letters must fit.
        "message.max.bytes": .within(
            65_536...1_000_000_000, because: "the worker's own records would not fit"),
    ]

    private static let consuming: [String: PropertyRule] = [
        "group.id": .reserved("set kafka.group instead"),
        "group.protocol": .only(
            "classic", "consumer",
            because: "a fleet is a group of consumers; consumer needs librdkafka 2.12 and Kafka 4.0"
        ),
        "group.protocol.type": .reserved("a fleet is a group of consumers"),
        "enable.auto.commit": .reserved("offsets are committed only through the ledger"),
        "enable.auto.offset.store": .reserved(
            "an offset is committed only when its pushes have ended"),
        "offset.store.method": .only(
            "broker", because: "offsets would be kept where no other worker finds them"),
        "auto.commit.interval.ms": .within(
            1...10_000,
            because: "0 commits only when the worker stops, and after a crash all pushes of this "
                + "time are sent again"),
        "auto.offset.reset": .reserved("set kafka.startFrom instead"),
        "enable.partition.eof": .reserved("the worker needs it to know when it has caught up"),
        "isolation.level": .only(
            "read_committed", because: "events of aborted transactions would be pushed"),
        // The planner may wait seconds for a broker, and drains before it polls again.
        "max.poll.interval.ms": .within(
            30_000...86_400_000,
            because: "a worker that waits for a broker would be put out of its group"),
        "fetch.wait.max.ms": .within(
            0...10_000, because: "the end of each table is noticed only then"),
        "fetch.error.backoff.ms": .within(
            0...60_000, because: "a partition is left unread for this long after any error"),
    ]

    private static let producing: [String: PropertyRule] = [
        "acks": .reserved("an event is released only when all in-sync replicas have its records"),
        "enable.idempotence": .reserved(
            "without it a broker restart duplicates and reorders records"),
        "enable.gapless.guarantee": .only(
            "false", because: "the first record that is refused would end the worker"),
        "transactional.id": .reserved("records are produced outside transactions"),
        "retries": .reserved("a record is tried until message.timeout.ms; set that instead"),
        "message.timeout.ms": .zeroOr(
            30_000...2_147_483_647,
            because: "a record that is given up is written again, so while a broker restarts the "
                + "worker would only repeat itself"),
        "request.timeout.ms": .within(
            1000...900_000, because: "brokers would refuse records that are being replicated"),
        "delivery.report.only.error": .only(
            "false", because: "no record would ever be known to be safe, and no event released"),
        "partitioner": .only(
            "murmur2_random", "murmur2",
            because: "a key has to stay in its partition, where its older records are"),
        "queuing.strategy": .only(
            "fifo", because: "an older record of a key would be written after a newer one"),
        "linger.ms": .within(
            0...500,
            because: "every event that caused a record waits for so long, and so does a "
                + "rebalance"),
        // In KiB. A record larger than the queue is never accepted.
        "queue.buffering.max.kbytes": .within(
            4096...2_147_483_647, because: "the worker's largest records would never fit"),
        "queue.buffering.max.messages": .zeroOr(
            1000...2_147_483_647, because: "records of one event would wait for each other"),
    ]
}
