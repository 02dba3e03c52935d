// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What a worker has to say to Kafka, and what it reads of `deferred`.
extension SimulationWorker {
    /// What Kafka is to be given: the letters among it, what was deferred, and what has ended there.
    func note(
        from position: Int, world: SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        try noteLetters(from: position)
        pipeline.endDeferredRows()
        for record in pipeline.records[position...] where record.topic == .deferred {
            if let partition = record.partition {
                epochs[record.ticket] = deferredAssignments[Int(partition)]?.epoch
            }
            // What an owner writes again says nothing of what was deferred since.
            guard let value = record.value, record.endedOffset == nil else {
                try world.deferred.judge(record, by: self, now: now)
                continue
            }
            let (token, _) = SimulatedSuppression.parse(key: record.key, value: nil)
            try require(
                restrictions.action(for: token.tokenClass) != .drop,
                "a push that an operator drops is deferred")
            deferrals[record.ticket] = record.key
            if let payloadAt = SimulatedSuppression.time("payloadAt", in: value) {
                payloadOrder.deferred(record.key, payloadAt: payloadAt)
            }
            // A claim that came back by a lost partition holds nothing.
            guard waits(for: record) else { continue }
            let payload = world.payload(in: value)
            let until = SimulatedSuppression.time("expiresAt", in: value)!
            model.deferred(token, ticket: record.ticket) { read in
                guard until + .seconds(1) > now.wall + (read.deadline - now.monotonic) else {
                    return false
                }
                let payloadAt = SimulatedSuppression.time("payloadAt", in: value)
                return self.isAnswer(payload, readAt: payloadAt, to: read)
            } holding: {
                self.holding(record.ticket)($0)
            }
        }
    }

    /// Whether a push with this payload, or none, says all that the event does. When a payload was
    /// read counts even for the event's own: from an earlier reading it may lose against another one
    /// that the later reading would win against.
    private func isAnswer(
        _ payload: SimulatedEvent?, readAt: WallTime?, to read: SimulationModel.ReadEvent
    ) -> Bool {
        guard let payload else { return read.event.payload == nil }
        guard payload.group == read.event.group, let readAt else { return false }
        if readAt != read.stamp { return readAt > read.stamp }
        return payload.serial == read.event.serial
            || bodies[payload.payload!.body].map { $0.sequence > read.sequence } ?? false
    }

    /// Whether the ticket holds the event's offset, or an older one of its partition.
    func holding(_ ticket: UInt64) -> SimulationModel.Holding {
        holding(pipeline.state.outbox.tickets[ticket]?.claims ?? [])
    }

    func holding(_ claims: [OffsetClaim]) -> SimulationModel.Holding {
        { [assignments] read in
            guard let assignment = assignments[read.partition] else { return false }
            return claims.contains { $0.epoch == assignment.epoch && $0.offset <= read.offset }
        }
    }

    private func noteLetters(from position: Int) throws(SimulationFailure) {
        for record in pipeline.records[position...] where record.topic == .deadLetters {
            let text = String(decoding: record.value!, as: UTF8.self)
            if let count = SimulatedRepeats.count(inLetter: text) {
                repeats.written += count
                continue
            }
            model.written(
                letter: text, ticket: record.ticket, holding: holding(record.ticket))
            if text.contains("\"failures\":") {
                model.written(mergedLetter: record.ticket, holding: holding(record.ticket))
                for index in rejections.indices where rejections[index].isMerged {
                    rejections[index].tickets.insert(record.ticket)
                }
                continue
            }
            let payload = try Self.payload(inLetter: record.value!)
            for token in Set(untold.map(\.token)) {
                let times = text.occurrences(of: token.nameInLetters)
                for _ in 0..<times { try tell(of: token, payload) }
                guard times > 0 else { continue }
                // Of several letters that name the token any may be this push's.
                for index in rejections.indices where rejections[index].flight.token == token {
                    rejections[index].tickets.insert(record.ticket)
                }
            }
        }
    }

    /// A letter names the token: it must have the payload of a push to it that was rejected.
    private func tell(
        of token: SimulatedToken, _ payload: LetterPayload
    ) throws(SimulationFailure) {
        let index = untold.firstIndex { rejected in
            guard rejected.token == token else { return false }
            if case .whole(let body) = payload { return body == rejected.body }
            return true
        }
        if let index {
            untold.remove(at: index)
        } else if toldWithout.remove(token) == nil {
            throw SimulationFailure(
                text: "a letter names \(token) with the payload of another: \(payload)")
        } else {
            // The one without a payload was of another push to the token.
            untold.remove(at: untold.firstIndex { $0.token == token }!)
        }
        if case .leftOut = payload, untold.contains(where: { $0.token == token }) {
            toldWithout.insert(token)
        }
    }

    private enum LetterPayload {
        /// Nil for "look again".
        case whole(String?)
        case leftOut
    }

    private static func payload(inLetter value: [UInt8]) throws(SimulationFailure) -> LetterPayload
    {
        var decoder = DeadLetterDecoder()
        let letter = value.withUnsafeBytes { try? decoder.letter($0) }
        guard let letter else { throw SimulationFailure(text: "a letter that cannot be read") }
        if letter.isOriginalLeftOut { return .leftOut }
        return .whole(letter.original?.value.map { String(decoding: $0, as: UTF8.self) })
    }

    func withTime(
        world: SimulatedKafka, now: Now, _ body: () throws(SimulationFailure) -> Void
    ) throws(SimulationFailure) {
        let written = pipeline.records.count
        try body()
        try note(from: written, world: world, now: now)
    }

    /// Kafka has the record.
    func acknowledged(_ record: OutgoingRecord, world: inout SimulatedKafka) {
        pipeline.acknowledged(record.ticket)
        model.acknowledged(record.ticket)
        deferrals[record.ticket] = nil
        shards[record.ticket] = nil
        endRejections(record.ticket, world: &world)
    }

    /// The letters of these pushes are in Kafka, or given up and counted.
    private func endRejections(_ ticket: UInt64, world: inout SimulatedKafka) {
        for rejection in rejections where rejection.tickets.contains(ticket) {
            world.deferred.ended(rejection.flight)
        }
        rejections.removeAll { $0.tickets.contains(ticket) }
    }

    func refused(
        _ record: OutgoingRecord, world: inout SimulatedKafka, now: Now
    ) {
        let written = pipeline.records.count
        let claimsBefore = Dictionary(
            uniqueKeysWithValues: deferrals.keys.map {
                ($0, pipeline.state.outbox.tickets[$0]!.claims.count)
            })
        pipeline.refused(record.ticket)
        guard pipeline.records.count == written else { return }
        // A shard is taken back in the next turn.
        if record.topic == .events { return }
        guard let key = deferrals.removeValue(forKey: record.ticket) else {
            return model.acknowledged(record.ticket)
        }
        // The one that the claims have gone to; if none, Kafka has a later one already.
        let later = deferrals.keys.first {
            deferrals[$0] == key
                && pipeline.state.outbox.tickets[$0]!.claims.count > claimsBefore[$0]!
        }
        if let later {
            model.pass(record.ticket, to: later)
        } else {
            world.deferred.oweToLatest(model.take(record.ticket), key: key)
        }
    }

    /// Whether offsets wait for the record.
    func waits(for record: OutgoingRecord) -> Bool {
        pipeline.state.outbox.tickets[record.ticket]?.claims.isEmpty == false
    }

    func tooLarge(
        _ record: OutgoingRecord, world: inout SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        let written = pipeline.records.count
        let merged = pipeline.counters.failuresMerged
        pipeline.tooLarge(record.ticket)
        if record.topic == .events { return }
        if pipeline.counters.failuresMerged > merged {
            deferrals[record.ticket] = nil
            return model.unwrite(record.ticket)
        }
        if deferrals.removeValue(forKey: record.ticket) != nil {
            // A letter takes its place.
            model.pass(record.ticket, to: pipeline.records[written].ticket)
            untold.append((SimulatedSuppression.parse(key: record.key, value: nil).0, nil))
        }
        if pipeline.records.count == written {
            model.acknowledged(record.ticket)
            endRejections(record.ticket, world: &world)
        }
        try note(from: written, world: world, now: now)
    }

    // MARK: The deferred topic

    func read(
        _ record: SimulatedDeferred.Record, partition: Int, world: SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        let written = pipeline.records.count
        dropsRead += record.isDropped ? 1 : 0
        let problem = withBytes(record.key) { key in
            withBytes(record.value) { value in
                pipeline.deferredRecord(
                    DeferredRecord(
                        offset: record.offset, key: key, value: value,
                        endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                        isDropped: record.isDropped, writtenAt: record.timestamp),
                    of: deferredAssignments[partition]!, now: now)
            }
        }
        try require(problem == nil, "a deferred push was not read: \(problem!)")
        deferredPositions[partition] = record.offset + 1
        readings[partition].read(record, now: now)
        if let payloadAt = record.value.flatMap({ SimulatedSuppression.time("payloadAt", in: $0) })
        {
            payloadOrder.read(
                record.key, payloadAt: payloadAt, offset: record.offset,
                isRewritten: record.endedOffset != nil)
        }
        try note(from: written, world: world, now: now)
    }

    func readAgain(
        _ record: SimulatedDeferred.Record, partition: Int, world: SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        let written = pipeline.records.count
        let id = deferredAssignments[partition]!
        pipeline.endDeferredRows()
        let count = pipeline.deferral.table.count
        withBytes(record.key) { key in
            withBytes(record.value) { value in
                pipeline.deferredReadAgain(
                    DeferredRecord(
                        offset: record.offset, key: key, value: value,
                        endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                        writtenAt: record.timestamp),
                    now: now)
            }
        }
        rereading.position = record.offset + 1
        // Not of a row that has stayed in memory.
        let isRead =
            pipeline.deferral.table.count > count
            || pipeline.deferral.rowOfKey(id).map { pipeline.deferral.table.isReplaying($0) }
                == true
        if isRead {
            readings[partition].readAgain(record, now: now)
        }
        try note(from: written, world: world, now: now)
    }
}
