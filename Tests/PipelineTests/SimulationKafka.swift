// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// A partition of an events topic, and the offset that the group has stored for it.
struct SimulatedPartition {
    let topic: UInt16
    let number: Int32
    /// As a letter has it.
    var name: String { "\(SimulationWorker.topics[Int(topic)])/\(number)" }
    var records: [SimulatedEventRecord] = []
    /// Compaction and transactions leave gaps: the first offset, and from one record to the next.
    var end: Int64 = 3
    var stored: Int64 = 3
    /// The metadata of the stored offset.
    private(set) var note: SimulatedNote?
    /// The worker that it is assigned to.
    var owner: Int?
    /// Counts assignments: Kafka takes no offsets from an earlier one.
    private(set) var epoch = 0

    /// Where reading begins, by the consumer's rule: at the stored offset as long as the log has it,
    /// else at the log's beginning, which is stored before anything is read.
    mutating func begin() {
        let low = records.first?.offset ?? end
        if stored < low || stored > end {
            stored = low
            note = nil
        }
        // By the worker's rule.
        if let note, note.note.end > end { self.note = nil }
        epoch += 1
    }

    /// The library commits no offset twice; an explicit commit has a note.
    mutating func store(_ offset: Int64, _ note: SimulatedNote?, epoch: Int) {
        guard epoch == self.epoch, offset > stored || offset == stored && note != nil else {
            return
        }
        stored = offset
        self.note = note
    }
}

/// What an owner has left for the next one, and how many registrations it had read then.
struct SimulatedNote {
    let note: CommitNote
    let known: Int

    var text: String? { note.text(cluster: "one") }
}

struct SimulatedEventRecord {
    /// Counts the records of all partitions: an offset may be given twice.
    let number: Int
    let offset: Int64
    let key: String?
    let value: String?
    let timestamp: WallTime
    /// Nil if it cannot be read.
    let event: SimulatedEvent?
    /// Where the withheld record stood that this one releases.
    var releases: DeadLetter.Source?
}

/// Kafka: what survives a worker's death.
struct SimulatedKafka {
    var partitions: [SimulatedPartition] = [
        SimulatedPartition(topic: 0, number: 0), SimulatedPartition(topic: 0, number: 1),
        SimulatedPartition(topic: 0, number: 2), SimulatedPartition(topic: 1, number: 0),
    ]
    var registrations: [SimulatedTableRecord] = []
    var suppressions: [SimulatedTableRecord] = []
    /// Letters of withheld events that nobody has redriven yet.
    var withheld: [DeadLetter] = []
    var deferred = SimulatedDeferred()
    /// Events by their payload's text.
    var payloads: [String: SimulatedEvent] = [:]
    /// Whether pushes to one token must be apart, and when each was handed its last one.
    var checksGaps = false
    var sentAt: [SimulatedToken: MonotonicTime] = [:]
    /// Tokens of which an operator's drop has made the owner forget when they were sent a push.
    var tokensWithoutTime: Set<SimulatedToken> = []
    /// Event records that nobody has read yet, by number.
    var unread: Set<Int> = []
    /// All that producers have written, by its place.
    var produced: [String: [SimulatedEventRecord]] = [:]
    /// How many shards were written; their records have numbers below zero.
    private var shards = 0

    mutating func append(registration: SimulatedTableRecord) {
        var record = registration
        record.partition = Int32(record.key.reduce(0) { ($0 + Int($1)) % 2 })
        // Offsets have gaps.
        record.offset = Int64(registrations.count)
        registrations.append(record)
    }

    /// Kafka has a worker's record of a shard.
    mutating func append(shard: OutgoingRecord, event: SimulatedEvent, now: Now) {
        // The topic's partitions are the first.
        let index = Int(shard.partition!)
        let offset = partitions[index].end
        shards += 1
        partitions[index].records.append(
            SimulatedEventRecord(
                number: -shards, offset: offset,
                key: String(decoding: shard.key, as: UTF8.self),
                value: String(decoding: shard.value!, as: UTF8.self), timestamp: now.wall,
                event: event))
        partitions[index].end = offset + 1
        // As for a producer's record.
        if offset >= partitions[index].stored { unread.insert(-shards) }
    }

    /// Retention has deleted records that nobody had read: they are lost, and known to be.
    mutating func deleteStart(of index: Int, _ count: Int) {
        let records = partitions[index].records.prefix(count)
        unread.subtract(records.map(\.number))
        partitions[index].records.removeFirst(records.count)
    }

    /// The new leader never had the last records: they are gone, and others get their offsets.
    mutating func truncateEnd(of index: Int, _ count: Int) {
        let records = partitions[index].records.suffix(count)
        guard let first = records.first else { return }
        unread.subtract(records.map(\.number))
        partitions[index].end = first.offset
        partitions[index].records.removeLast(records.count)
    }

    /// The event whose payload a record of `deferred` carries.
    func payload(in value: [UInt8]) -> SimulatedEvent? {
        let text = String(decoding: value, as: UTF8.self)
        guard text.contains("\"payload\":") else { return nil }
        let body = text.text(after: "\"payload\":")
        return payloads.first { body.hasPrefix($0.key) }?.value
    }

    /// The records that compaction leaves below `end`: the last of each key.
    static func compacted(
        _ log: [SimulatedTableRecord], from start: Int = 0, end: Int
    ) -> [SimulatedTableRecord] {
        var last: [[UInt8]: Int] = [:]
        for position in 0..<end { last[log[position].key] = position }
        return (start..<end).filter { last[log[$0].key] == $0 }.map { log[$0] }
    }
}
