// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

extension PushPipeline {
    // MARK: Verdicts

    /// The claims pass to the record: its acknowledgement gives them back.
    mutating func write(_ verdict: Verdict, lane: LaneID, token: [UInt8], holds: [Hold]) {
        counters.verdictsWritten += 1
        let key = token.withUnsafeBufferPointer { RecordKey.token(lane: routing[lane], token: $0) }
        records.append(
            tickets.issue(
                topic: .verdicts, key: key, value: VerdictEncoder.value(verdict), holds: holds,
                verdict: TicketTable.GivenVerdict(
                    lane: lane, token: token, registeredAt: verdict.registeredAt)))
    }

    // MARK: Dead letters

    /// The letter of one push that has failed for good, with this push's token alone.
    func letter(for slot: UInt32, reason: String, status: UInt16, now: Now) -> DeadLetter {
        let push = pushes[slot]
        let lane = routing[push.lane]
        let firstAt = now.wall(at: push.firstTriedAt)
        var letter = DeadLetter(
            reason: reason, source: source(push.content.origin), firstAt: firstAt,
            lastAt: now.wall, attempts: Int(push.attempts) + 1,
            subject: subject(of: push.content, app: lane.app),
            targets: [
                DeadLetter.Target(
                    token: Array(slab.token(slot)), environment: lane.environment,
                    apnsTopic: lane.apnsTopic)
            ])
        letter.app = routing.name(of: lane.app)
        letter.status = status == 0 ? nil : status
        if let payload = pushes.bodies.payload(push.content.body) {
            letter.original = DeadLetter.Original(key: nil, value: payload.body)
            letter.collapseID = payload.collapseID
            if payload.origin != push.content.origin {
                letter.payloadSource = source(payload.origin)
            }
        }
        return letter
    }

    func subject(of content: PushContent, app: AppID) -> [UInt8] {
        subject(number: content.subject, tag: content.subjectTag, app: app)
    }

    /// Empty if nobody shows the subject any more: its number may mean another one by now.
    func subject(number: UInt32, tag: UInt32, app: AppID) -> [UInt8] {
        guard number != 0 else { return [] }
        let subject = SubjectID(rawValue: number)
        let bytes = audience.subjectBytes(of: subject)
        let hash = audience.hash(app, bytes, isKindWide: audience.isKindWide(subject))
        guard UInt32(truncatingIfNeeded: hash) == tag, audience.subject(app, bytes) == subject
        else { return [] }
        return Array(bytes)
    }

    func source(_ position: RecordPosition) -> DeadLetter.Source {
        DeadLetter.Source(
            topic: originTopics.names[Int(position.topic)], partition: position.partition,
            offset: position.offset)
    }

    /// The subject; the event's place where that is not known any more.
    func key(of letter: DeadLetter) -> [UInt8] {
        if !letter.subject.isEmpty { return letter.subject }
        let source = letter.source
        return Array("\(source.topic)/\(source.partition)/\(source.offset)".utf8)
    }

    // MARK: Acknowledgements

    /// Kafka has the record: what waited for it is released.
    package mutating func acknowledged(_ ticket: UInt64) {
        guard let ticket = tickets.close(ticket) else { return }
        for hold in ticket.holds { ledger.release(hold) }
    }

    /// Kafka refused the record, did not take it in time, or takes none of its topic at the moment.
    /// It is produced again, and its offsets wait; but a shard is fanned out here, and what is no
    /// longer true is given up, a verdict or a record of `deferred`: the topic must not end with it.
    package mutating func refused(_ ticket: UInt64) {
        counters.recordsRefused += 1
        tickets.noteRefusal(of: ticket)
        guard let open = tickets[ticket] else { return }
        if open.record.topic == .events {
            refusedShards.append(ticket)
        } else if let verdict = open.verdict, !isLatest(verdict) {
            acknowledged(ticket)
        } else if let order = open.order,
            payloadOrder.isSuperseded(order.hash, age: order.age)
        {
            // A newer payload was accepted, and its null may be in Kafka: this must not come after it.
            acknowledged(ticket)
        } else if let superseded = tickets.closeSuperseded(ticket) {
            for hold in superseded.holds { ledger.release(hold) }
        } else if isRewriteOfThePast(open.record) {
            acknowledged(ticket)
        } else {
            records.append(open.record)
        }
    }

    /// A record was to be written again for its row, which has ended since, says something else, or is
    /// another worker's. Behind the row's null it would have the push sent once more.
    private mutating func isRewriteOfThePast(_ record: OutgoingRecord) -> Bool {
        guard record.topic == .deferred, record.value != nil, let offset = record.endedOffset
        else { return false }
        _ = deferral(in: record)
        let track = deferredPartitions.first { $0.value == record.partition }?.key
        let row = track.flatMap { track in
            tokenKey.token.withUnsafeBytes { token in
                deferred.row(
                    lane: tokenKey.lane, token: token, coalescingKey: tokenKey.coalescingKey,
                    track: track)
            }
        }
        guard let row else { return true }
        return deferred.offset(of: row) != offset || deferred.isRevoked(row)
    }

    private func isLatest(_ verdict: TicketTable.GivenVerdict) -> Bool {
        verdict.token.withUnsafeBytes { bytes in
            audience.token(verdict.lane, bytes).flatMap { audience.verdictRegisteredAt($0) }
        } == verdict.registeredAt
    }

    /// Kafka will never take the record as it is. A dead letter is produced once more with nothing but
    /// its reason and its source; if that is too large, or it is a verdict, the record is given up,
    /// counted, and its offsets are released: it must not block a partition.
    package mutating func tooLarge(_ ticket: UInt64) {
        counters.recordsRefused += 1
        if tickets[ticket]?.record.topic == .events {
            refusedShards.append(ticket)
            return
        }
        if tickets[ticket]?.record.topic == .deferred {
            guard let deferral = tickets.close(ticket), !deferral.holds.isEmpty else {
                counters.recordsAbandoned += 1
                return
            }
            return deferralTooLarge(deferral)
        }
        guard let record = tickets.shrink(ticket) else {
            counters.recordsAbandoned += 1
            acknowledged(ticket)
            return
        }
        records.append(record)
    }

    /// The push cannot wait in Kafka and must not hold its offsets for ever: it is a dead letter.
    private mutating func deferralTooLarge(_ ticket: TicketTable.Ticket) {
        let record = ticket.record
        let push = deferral(in: record)
        let lane = routing[tokenKey.lane]
        var letter = DeadLetter(
            reason: DeadLetter.OwnReason.deferralTooLarge.rawValue,
            source: push.source ?? source(.unknown),
            firstAt: push.firstAt ?? push.notBefore, lastAt: push.notBefore,
            attempts: push.attempts, subject: push.subject,
            targets: [
                DeadLetter.Target(
                    token: tokenKey.token, environment: lane.environment,
                    apnsTopic: lane.apnsTopic)
            ])
        letter.app = routing.name(of: lane.app)
        letter.collapseID = push.collapseID
        letter.payloadSource = push.payloadSource
        letter.original = push.payload.map { DeadLetter.Original(key: nil, value: $0.body) }
        letter.leaveOutOriginal()
        counters.rejected += 1
        counters.deferred -= 1
        writeAtOnce(letter, holds: ticket.holds)
    }
}
