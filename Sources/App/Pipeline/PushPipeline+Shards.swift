// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// An event of very many tokens would keep one worker busy while the others idle. It is written again
/// as shards, one record each to different partitions, and ends here when Kafka has them all. Each
/// reader of a shard goes through the same list and sends to its part of the tokens.
extension PushPipeline {
    /// - Returns: false for what is to be fanned out here: a shard, an event where no topic takes
    ///   shards now or too many records wait for Kafka already, or one that no worker could read
    ///   again.
    mutating func split(
        _ event: Event, list: EventList, _ track: TrackID, _ position: RecordPosition, now: Now
    ) -> Bool {
        guard let topic = settings.shards, topic.count > 1, event.shard == nil, shardFlow != .shut,
            tickets.usage(of: .events).count + Int(topic.count) <= settings.unacknowledgedMax,
            tickets.usage(of: .events).bytes <= settings.shardBytesMax
        else { return false }
        let key = Array(event.subject)
        let values = (0..<topic.count).map { index in
            let tokens = TokenShard(index: index, count: topic.count)
            return shard(tokens, of: event, list: list, at: position, now: now)
        }
        // Such as one that is larger than the configuration allows records to be: the longest.
        guard let last = values.last, readShard(key: key, value: last, now: now, { _, _ in })
        else { return false }
        let hold = ledger.hold(track)
        for (index, value) in values.enumerated() {
            ledger.retain(hold)
            records.append(
                tickets.issue(
                    topic: .events, partition: topic.partition(ofShard: index), key: key,
                    value: value, holds: [hold]))
        }
        ledger.release(hold)
        counters.eventsSplit += 1
        if shardFlow == .probing { shardFlow = .shut }
        return true
    }

    /// The value of an event of ours; its key is the subject.
    private func shard(
        _ tokens: TokenShard, of event: Event, list: EventList, at position: RecordPosition,
        now: Now
    ) -> [UInt8] {
        var draft = EventDraft(event, app: routing.name(of: event.app))
        // The lists of a kind-wide event are split one by one.
        if let kind = list.kind { draft.kinds = [kind] }
        let source = source(position)
        draft.shard = EventShard(
            tokens: tokens, topic: source.topic, partition: source.partition,
            offset: source.offset, notBefore: event.delay > .zero ? now.wall + event.delay : nil)
        return EventEncoder.value(draft)
    }

    /// A push of a shard speaks of the whole event: its `apns-id` and collapse ID are the same whoever
    /// reads the shard, and however often.
    @inline(never)
    mutating func setSource(_ shard: EventShard, of request: inout FanOutRequest, now: Now) {
        if let topic = originTopics.number(of: shard.topic) {
            request.origin = RecordPosition(
                topic: topic, partition: shard.partition, offset: shard.offset)
        }
        guard let notBefore = shard.notBefore, notBefore > now.wall else { return }
        // No delay is longer than the longest that is configured, whoever wrote the record.
        request.notBefore = now.monotonic + min(notBefore - now.wall, delayMax)
    }

    // MARK: Refused shards

    /// Fans out here what Kafka did not take, such as for want of the right to write. The oldest
    /// first: its pushes are the next to expire.
    mutating func fanOutRefusedShards(now: Now) {
        var taken = 0
        while !fanOuts.isFull, taken < refusedShards.count {
            taken += 1
            guard let shard = tickets.close(refusedShards[taken - 1]) else { continue }
            counters.shardsRefused += 1
            sequence += 1
            let isRead = readShard(key: shard.record.key, value: shard.record.value!, now: now) {
                pipeline, event in pipeline.fanOut(shard: event, hold: shard.holds[0], now: now)
            }
            precondition(isRead, "a shard of ours cannot be read")
        }
        refusedShards.removeFirst(taken)
        giveBack()
    }

    /// The claim passes to the walk.
    private mutating func fanOut(shard event: Event, hold: Hold, now: Now) {
        let list =
            event.subject.isEmpty
            ? kindList(of: event, name: event.kinds[0]) : subjectList(of: event)
        let count = list.subject.map { audience.count($0) } ?? 0
        guard event.expiresAt > now.wall, count > 0 else {
            if count > 0 { counters.eventsExpired += 1 } else { counters.eventsUnmatched += 1 }
            return ledger.release(hold)
        }
        let request = request(event, of: list, position: .unknown, now: now)
        audience.setCursor(SubjectID(rawValue: request.subject), true)
        fanOuts.start(request, count: count, hold: hold)
    }

    /// - Returns: false if it cannot be read.
    private mutating func readShard(
        key: [UInt8], value: [UInt8], now: Now,
        _ body: (inout PushPipeline, Event) -> Void
    ) -> Bool {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                let record = EventRecord(
                    binding: settings.shards!.binding, key: key, value: value,
                    timestamp: now.wall)
                let event = try? intake.decode(record, now: now.wall) { _ in nil }
                guard let event else { return false }
                body(&self, event)
                return true
            }
        }
    }
}
