// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel

/// Which topic a record of ours goes to.
package enum RecordTopic: Sendable, Hashable {
    case verdicts
    case deadLetters
}

/// A record to be produced. Its ticket comes back with the acknowledgement.
package struct OutgoingRecord: Sendable {
    package var topic: RecordTopic
    package var key: [UInt8]
    /// Nil removes the key from a compacted topic.
    package var value: [UInt8]?
    package var ticket: UInt64
}

/// Records that Kafka has not acknowledged yet, each with the offsets that must wait for it: an
/// offset is stored only after the verdicts and dead letters it caused are safe.
struct TicketTable {
    private var open: [UInt64: Ticket] = [:]
    private var last: UInt64 = 0

    struct Ticket {
        var record: OutgoingRecord
        var holds: [Hold]
    }

    var count: Int { open.count }
    var isEmpty: Bool { open.isEmpty }

    mutating func issue(
        topic: RecordTopic, key: [UInt8], value: [UInt8]?, holds: [Hold]
    ) -> OutgoingRecord {
        last += 1
        let record = OutgoingRecord(topic: topic, key: key, value: value, ticket: last)
        open[last] = Ticket(record: record, holds: holds)
        return record
    }

    mutating func close(_ ticket: UInt64) -> Ticket? { open.removeValue(forKey: ticket) }

    func record(_ ticket: UInt64) -> OutgoingRecord? { open[ticket]?.record }

    /// Replaces what an open ticket is to produce, as when a record was too large.
    mutating func shrink(_ ticket: UInt64, value: [UInt8]) -> OutgoingRecord? {
        open[ticket]?.record.value = value
        return open[ticket]?.record
    }

    func forEachHold(_ body: (Hold) -> Void) {
        for ticket in open.values { ticket.holds.forEach(body) }
    }
}
