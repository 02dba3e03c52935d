// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// Faults of the topic `deferred`, in lives in which pushes have a minimum gap: acknowledgements that take
/// longer than an announcement is worth, and operators who drop what waits there.
extension Simulation {
    /// How much longer Kafka takes for a record of `deferred`.
    mutating func slowness() -> Duration {
        guard seed % 4 == 1, faults.next(below: 100) < 3 else { return .zero }
        slowRecords += 1
        return .seconds(Int64(21 + faults.next(below: 40)))
    }

    /// An operator drops a push without a payload that waits.
    mutating func dropDeferred() {
        guard seed % 4 == 1, faults.next(below: 100) < 2 else { return }
        let index = Int(faults.next(below: UInt64(kafka.deferred.partitions.count)))
        var latest: [[UInt8]: SimulatedDeferred.Record] = [:]
        for record in kafka.deferred.partitions[index].records { latest[record.key] = record }
        let waiting = latest.values
            .filter { $0.value != nil && !$0.isSent && Self.isPlain($0.key) }
            .sorted { $0.offset < $1.offset }
        guard let record = waiting.randomElement(using: &faults) else { return }
        if let owner = kafka.deferred.partitions[index].owner {
            coverage.note("deferred dropped", workers[owner]!)
        }
        tell("an operator drops deferred \(index)/\(record.offset)")
        let said = record.endedOffset.map { min($0, record.offset) } ?? record.offset
        kafka.deferred.drop(record.key, upTo: said, partition: Int32(index), now: now)
        // The time of the last push is forgotten with the row.
        kafka.tokensWithoutTime.insert(SimulatedSuppression.parse(key: record.key, value: nil).0)
    }

    /// Pushes without a payload have three parts in their keys.
    private static func isPlain(_ key: [UInt8]) -> Bool {
        key.count { $0 == UInt8(ascii: "/") } == 2
    }

    /// A partition was given back in order: nothing in it announces a push of this worker's that was
    /// not sent, or the next owner would keep its distance to it.
    func requireNoAnnouncements(
        _ id: AssignmentID, of number: Int
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        guard let index = worker.deferredAssignments.firstIndex(of: id),
            worker.pipeline.isDrained(id)
        else { return }
        var latest: [[UInt8]: SimulatedDeferred.Record] = [:]
        for record in kafka.deferred.partitions[index].records { latest[record.key] = record }
        let now = time(of: number)
        for record in latest.values where record.writer == worker.life && !record.isSent {
            // What was on its way when the partition was lost before comes late.
            guard record.epoch == id.epoch, let value = record.value,
                let sentAt = SimulatedSuppression.time("lastSentAt", in: value)
            else { continue }
            let isOnItsWay =
                worker.produced.contains { $0.record.key == record.key }
                || worker.pipeline.records.contains { $0.key == record.key }
            // An owner before, that was killed, may have announced it.
            let known = worker.lastSent(record.key).map { now.wall(at: $0) } ?? now.wall
            let allowed = Duration.seconds(2) + (clocks.setBack[number] ?? .zero)
            try require(
                sentAt < max(known, now.wall) + allowed || isOnItsWay,
                "a partition is given back with an announced push that was not sent: "
                    + String(decoding: record.key, as: UTF8.self))
        }
    }
}

extension SimulatedDeferred {
    /// An operator drops what waits under this key.
    mutating func drop(_ key: [UInt8], upTo offset: Int64, partition: Int32, now: Now) {
        append(
            OutgoingRecord(
                topic: .deferred, key: key, value: nil, ticket: 0, partition: partition,
                endedOffset: offset),
            payload: nil, debts: [], by: 0, epoch: 0, now: now)
        drops[key] = (offset, now.monotonic)
    }

    /// A row answers for these from now on. One that was dropped answers for nothing that was read
    /// later.
    mutating func join(
        _ joined: SimulationWorker.Joined, now: Now
    ) throws(SimulationFailure) {
        guard let drop = drops[joined.key], joined.offset <= drop.upTo else {
            return owe(joined.debts, key: joined.key, offset: joined.offset, since: now.monotonic)
        }
        try require(
            joined.debts.allSatisfy { $0.read.readAt <= drop.at },
            "an event joins a row that was dropped before it was read: \(joined.debts)")
    }
}
