// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The `deferred` topic, and what is owed by its records: what one worker has put there another one
/// must send.
struct SimulatedDeferred {
    struct Record {
        let offset: Int64
        let key: [UInt8]
        let value: [UInt8]?
        /// The event whose payload it has.
        let payload: SimulatedEvent?
        /// What the value says of it.
        let expiresAt: WallTime?
        let endedOffset: Int64?
        let endedPayloadAt: WallTime?
        let writtenAt: MonotonicTime
        /// The same by the clock of whoever wrote it.
        let timestamp: WallTime
        /// Which process wrote it; 0 for an operator.
        let writer: Int
        /// Of the writer's assignment then; 0 where it did not own the partition.
        let epoch: UInt32
        /// Whether an operator has dropped the push.
        var isDropped: Bool { value == nil && writer == 0 }
        /// Whether it says that nothing is owed.
        var isSent: Bool { value.map(SimulatedDeferred.saysSent) ?? false }
    }

    struct Partition {
        var records: [Record] = []
        var end: Int64 = 0
        var owner: Int?
        /// Until when it has no leader, so that nothing of it is written or read.
        var absentUntil = MonotonicTime(nanoseconds: .min)
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
        /// The event whose payload it carried, and when that was read.
        let payload: SimulatedEvent?
        let payloadAt: WallTime
    }

    var partitions = [Partition(), Partition()]
    private(set) var debts: [Debt] = []
    /// Pushes that have ended for good, by key.
    private var endings: [[UInt8]: [Ending]] = [:]
    /// When each event with a payload was read: by the clocks of its readers, and in truth.
    private var reads: [Int: [WallTime: MonotonicTime]] = [:]
    /// When a suppression on the token was last written that its registration did not outlive.
    private var suppressions: [SimulatedToken: MonotonicTime] = [:]
    private var endedUpTo: [[UInt8]: Int64] = [:]
    private var endedPayloads: [[UInt8]: WallTime] = [:]
    /// Up to which offset operators have dropped what waits, and when.
    var drops: [[UInt8]: (upTo: Int64, at: MonotonicTime)] = [:]

    func partition(of key: [UInt8]) -> Int {
        KeyPartition.of(key, partitions: partitions.count)
    }

    func isAbsent(_ index: Int, now: Now) -> Bool { partitions[index].absentUntil > now.monotonic }

    /// Whether Kafka takes the record now.
    func takes(_ record: OutgoingRecord, now: Now) -> Bool {
        record.topic != .deferred || !isAbsent(partition(of: record.key), now: now)
    }

    // MARK: Records

    mutating func append(
        _ record: OutgoingRecord, payload: SimulatedEvent?, debts: [SimulationModel.Debt],
        by writer: Int, epoch: UInt32, now: Now
    ) {
        let index = partition(of: record.key)
        precondition(
            record.partition == (record.endedOffset == nil ? nil : Int32(index)),
            "what its owner says of a record goes where the record stands")
        let offset = partitions[index].end
        partitions[index].end += 1
        partitions[index].records.append(
            Record(
                offset: offset, key: record.key, value: record.value, payload: payload,
                expiresAt: record.value.map { SimulatedSuppression.time("expiresAt", in: $0)! },
                endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                writtenAt: now.monotonic, timestamp: now.wall, writer: writer, epoch: epoch))
        if let readAt = record.endedPayloadAt { endPayloads(of: record.key, upTo: readAt) }
        if record.value.map(Self.saysSent) ?? true, let ended = record.endedOffset {
            endedUpTo[record.key] = max(endedUpTo[record.key] ?? -1, ended)
            self.debts.removeAll { $0.key == record.key && $0.offset <= ended }
        }
        owe(debts, key: record.key, offset: offset, since: now.monotonic)
    }

    /// A newer payload was accepted: what is not newer than that is answered by it.
    private mutating func endPayloads(of key: [UInt8], upTo readAt: WallTime) {
        endedPayloads[key] = max(endedPayloads[key] ?? readAt, readAt)
        debts.removeAll { $0.key == key && $0.debt.read.stamp <= readAt }
    }

    /// Whether the topic has had a tombstone for payloads of this key that were read then.
    func isEnded(_ key: [UInt8], payloadAt: WallTime) -> Bool {
        endedPayloads[key].map { payloadAt <= $0 } ?? false
    }

    mutating func owe(
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
                !left.isSent, let said = left.endedOffset, said < owed.offset,
                owed.offset < left.offset
            else { return owed }
            return Debt(debt: owed.debt, key: owed.key, offset: said, at: owed.at)
        }
    }

    /// Whether the record of a push that was sent only keeps the time.
    static func saysSent(_ value: [UInt8]) -> Bool {
        String(decoding: value, as: UTF8.self).contains("\"sent\":true")
    }

    // MARK: Evidence

    mutating func ended(_ flight: SimulationModel.Flight) {
        endings[flight.key, default: []].append(
            Ending(
                handedOverAt: flight.handedOverAt, payload: flight.payload?.event,
                payloadAt: flight.payloadAt))
    }

    mutating func suppressed(_ token: SimulatedToken, now: Now) {
        suppressions[token] = now.monotonic
    }

    mutating func read(_ event: SimulatedEvent, at time: WallTime, now: Now) {
        reads[event.serial, default: [:]][time] = now.monotonic
    }

    /// Whether somebody read the event when his clock showed this.
    func isKnown(_ time: WallTime, of event: SimulatedEvent) -> Bool {
        reads[event.serial]?[time] != nil
    }

    /// Sent after the event was put into the topic; or, where the event has a payload, with that or
    /// with one that was read later, by the clocks of those who read them, or after the record of the
    /// other was written.
    private func answers(_ ending: Ending, _ owed: Debt) -> Bool {
        let event = owed.debt.read.event
        guard event.payload != nil else { return ending.handedOverAt >= owed.at }
        guard let payload = ending.payload else { return false }
        if payload.serial == event.serial { return true }
        guard payload.group == event.group else { return false }
        if let readAt = reads[payload.serial]?[ending.payloadAt], readAt > owed.at { return true }
        return ending.payloadAt >= owed.debt.read.stamp
    }

    /// Whether nothing more need be sent for it, as far as this worker can know.
    private func isOver(_ owed: Debt, by worker: SimulationWorker, now: Now) -> Bool {
        let token = owed.debt.token!
        let model = worker.model
        let reading = worker.readings[partition(of: owed.key)]
        if model.isSuppressed(token) || !model.isRegistered(token) { return true }
        // What is on its way ends when nobody shows its token, even if the token comes back.
        if let time = model.unregisteredAt[token], time >= reading.time(of: owed) { return true }
        // So it does where the token was suppressed, though the tombstone may wait for its letter.
        if let time = model.unsuppressedAt[token], time >= reading.time(of: owed) { return true }
        if let time = worker.rowsDroppedAt[owed.key], time >= reading.time(of: owed) { return true }
        if isUnshown(owed, model, since: reading.time(of: owed)) { return true }
        return suppressions[token].map { $0 >= owed.at } ?? false
            || reading.deadline(of: owed) <= now.monotonic
            || endings[owed.key, default: []].contains { answers($0, owed) }
    }

    /// Whether its payload, or one that has replaced it, is not for whoever has the phone now, or has
    /// had it since.
    private func isUnshown(
        _ owed: Debt, _ model: SimulationModel, since time: MonotonicTime
    ) -> Bool {
        let (token, event) = (owed.debt.token!, owed.debt.read.event)
        guard event.payload != nil else { return false }
        if let unshown = model.unshown(token, group: event.group), unshown >= time { return true }
        return !model.isShown(event, to: token)
            || partitions[partition(of: owed.key)].records.contains { record in
                record.key == owed.key
                    && record.payload.map { !model.isShown($0, to: token) } ?? false
            }
    }

    /// Judges a tombstone or a rewritten record before it is written. Everything that a tombstone
    /// ends must have ended. A rewritten record must not expire earlier than its owner has read;
    /// the owner's clock may have been set since then, and the record is of its present time.
    func judge(
        _ record: OutgoingRecord, by worker: SimulationWorker, now: Now
    ) throws(SimulationFailure) {
        if let readAt = record.endedPayloadAt {
            return try require(
                endings[record.key, default: []].contains { $0.payloadAt >= readAt },
                "a tombstone ends payloads up to one that was not accepted")
        }
        let owing = record.value.flatMap { Self.saysSent($0) ? nil : $0 }
        let until = owing.map { SimulatedSuppression.time("expiresAt", in: $0)! }
        for owed in debts where owed.key == record.key && owed.offset <= record.endedOffset! {
            if isOver(owed, by: worker, now: now) { continue }
            guard let until else {
                throw SimulationFailure(text: "a tombstone is written, but this is owed: \(owed)")
            }
            let deadline = worker.readings[partition(of: owed.key)].deadline(of: owed)
            let known = now.wall + (deadline - now.monotonic)
            // What the record itself says is enough: a clock that was set since its reading, and
            // under which it is read again, brings its end nearer.
            let records = partitions[partition(of: owed.key)].records
            let said = records.first { $0.offset == owed.offset }?.expiresAt
            let isAsSaid = said.map { until >= $0 } ?? false
            try require(
                isAsSaid || until + .seconds(1) > known, "written again with less time: \(owed)")
        }
    }
}

/// How the owner of one partition of `deferred` has read it: when each record, and until when what it
/// says is to be sent, by the clock that the owner had at that moment.
struct SimulatedReading {
    private var times: [Int64: MonotonicTime] = [:]
    private var deadlines: [Int64: MonotonicTime] = [:]
    private var latest: [[UInt8]: MonotonicTime] = [:]

    mutating func read(_ record: SimulatedDeferred.Record, now: Now) {
        guard let expiresAt = record.expiresAt, !record.isSent else { return }
        let deadline = now.monotonic + (expiresAt - now.wall)
        // What is written again says what stood there before.
        for offset in [record.offset, record.endedOffset ?? record.offset] {
            deadlines[offset] = max(deadlines[offset] ?? deadline, deadline)
            times[offset] = times[offset] ?? now.monotonic
        }
        latest[record.key] = max(latest[record.key] ?? deadline, deadline)
    }

    /// A row was made anew of the record: until when it is to be sent is by the clock of this reading.
    mutating func readAgain(_ record: SimulatedDeferred.Record, now: Now) {
        guard let expiresAt = record.expiresAt, !record.isSent else { return }
        let deadline = now.monotonic + (expiresAt - now.wall)
        for offset in [record.offset, record.endedOffset ?? record.offset] {
            deadlines[offset] = deadline
        }
        latest[record.key] = deadline
    }

    /// Of what the record says that carries the debt, or those that have hidden it.
    func deadline(of owed: SimulatedDeferred.Debt) -> MonotonicTime {
        deadlines[owed.offset] ?? latest[owed.key] ?? .distantFuture
    }

    /// When that record was read first.
    func time(of owed: SimulatedDeferred.Debt) -> MonotonicTime { times[owed.offset] ?? owed.at }
}
