// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Pipeline

/// The `deferred` topic, and what is owed by its records: what one worker has put there another one
/// must send.
struct SimulatedDeferred {
    struct Record {
        let offset: Int64
        let key: [UInt8]
        let value: [UInt8]?
        let endedOffset: Int64?
        let writtenAt: MonotonicTime
    }

    struct Partition {
        var records: [Record] = []
        var end: Int64 = 0
        var owner: Int?
    }

    /// A pair of event and token whose offset was released for a record of `key`.
    struct Debt {
        let debt: SimulationModel.Debt
        let key: [UInt8]
        let offset: Int64
        let at: MonotonicTime
    }

    struct Ending {
        let handedOverAt: MonotonicTime
        /// Of the event whose payload it carried.
        let serial: Int?
    }

    var partitions = [Partition(), Partition()]
    private(set) var debts: [Debt] = []
    /// Pushes that have ended for good, by key.
    private var endings: [[UInt8]: [Ending]] = [:]
    /// When each event with a payload was last read by any worker.
    private var reads: [Int: WallTime] = [:]
    /// When a verdict on the token was last written that its registration did not outlive.
    private var suppressions: [SimulatedToken: MonotonicTime] = [:]
    private var endedUpTo: [[UInt8]: Int64] = [:]

    func partition(of key: [UInt8]) -> Int {
        Int(key.withUnsafeBytes { StableHash.hash64($0, seed: 5) } % UInt64(partitions.count))
    }

    // MARK: Records

    mutating func append(_ record: OutgoingRecord, debts: [SimulationModel.Debt], now: Now) {
        let index = partition(of: record.key)
        let offset = partitions[index].end
        partitions[index].end += 1
        partitions[index].records.append(
            Record(
                offset: offset, key: record.key, value: record.value,
                endedOffset: record.endedOffset, writtenAt: now.monotonic))
        if record.value == nil, let ended = record.endedOffset {
            endedUpTo[record.key] = max(endedUpTo[record.key] ?? -1, ended)
            self.debts.removeAll { $0.key == record.key && $0.offset <= ended }
        }
        owe(debts, key: record.key, offset: offset, since: now.monotonic)
    }

    private mutating func owe(
        _ debts: [SimulationModel.Debt], key: [UInt8], offset: Int64, since time: MonotonicTime
    ) {
        for debt in debts {
            self.debts.append(Debt(debt: debt, key: key, offset: offset, at: time))
        }
    }

    /// Kafka has refused a record whose claims went to a later one, which it has already.
    mutating func oweToLatest(_ debts: [SimulationModel.Debt], key: [UInt8]) {
        let records = partitions[partition(of: key)].records
        let last = records.last { $0.key == key && $0.value != nil && $0.endedOffset == nil }
        guard let last else { return }
        // That one's push has ended: it was handed over after all that it stands for was read.
        if last.offset <= endedUpTo[key] ?? -1 { return }
        owe(debts, key: key, offset: last.offset, since: last.writtenAt)
    }

    /// Removes what a later record of its key hides. `min.compaction.lag.ms` is there so that the
    /// owner has read the later record, and written again what it hides, before that.
    mutating func compact(_ index: Int) {
        var last: [[UInt8]: Record] = [:]
        for record in partitions[index].records { last[record.key] = record }
        partitions[index].records.removeAll { last[$0.key]!.offset != $0.offset }
        // A record that was written again, and says no less, stands for what it hides from now on.
        debts = debts.map { owed in
            guard partition(of: owed.key) == index, let left = last[owed.key], left.value != nil,
                let said = left.endedOffset, said < owed.offset, owed.offset < left.offset
            else { return owed }
            return Debt(debt: owed.debt, key: owed.key, offset: said, at: owed.at)
        }
    }

    // MARK: Evidence

    mutating func ended(_ flight: SimulationModel.Flight) {
        endings[flight.key, default: []].append(
            Ending(
                handedOverAt: flight.handedOverAt, serial: flight.payload?.event.serial))
    }

    mutating func suppressed(_ token: SimulatedToken, now: Now) {
        suppressions[token] = now.monotonic
    }

    mutating func read(_ event: SimulatedEvent, now: Now) { reads[event.serial] = now.wall }

    /// Sent after the event was put into the topic; or, where the event has a payload, with that or
    /// with one that was read later.
    private func answers(_ ending: Ending, _ owed: Debt) -> Bool {
        let event = owed.debt.read.event
        guard event.payload != nil else { return ending.handedOverAt >= owed.at }
        guard let serial = ending.serial else { return false }
        if serial == event.serial { return true }
        guard let readAt = reads[serial] else { return false }
        return readAt >= owed.debt.read.readAt.wall
    }

    /// A null is about to be written: everything that it ends must have ended.
    func judge(
        _ record: OutgoingRecord, by model: SimulationModel, now: Now
    ) throws(SimulationFailure) {
        for owed in debts where owed.key == record.key && owed.offset <= record.endedOffset! {
            let token = owed.debt.token!
            let isOver =
                suppressions[token].map { $0 >= owed.at } ?? false
                || owed.debt.read.event.expiresAt <= now.wall || model.isSuppressed(token)
                || !model.isRegistered(token)
                || endings[owed.key, default: []].contains { answers($0, owed) }
            try require(isOver, "a null is written, but this is owed: \(owed)")
        }
    }

    mutating func forgive(now: Now) {
        debts.removeAll { $0.debt.read.event.expiresAt <= now.wall }
    }
}
