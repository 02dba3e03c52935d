// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// An event of very many tokens would keep one worker busy while the others idle. It is written
/// again as shards, one record each to different partitions, and ends here when Kafka has them all.
/// Each reader of a shard goes through the same list and sends to its part of the tokens.
extension FanOut {
    /// - Returns: false where the event must be fanned out here: it is a shard, no topic takes
    ///   shards now, too many records wait for Kafka already, or no worker could read the shards.
    mutating func split(
        _ event: Event, _ ask: ListRequest, _ read: RecordRead, _ state: inout PipelineState
    ) -> Bool {
        let (request, now) = (ask.request, read.now)
        guard let topic = state.settings.shards, topic.count > 1, event.shard == nil,
            state.hasRoomForShards(Int(topic.count))
        else { return false }
        let key = Array(event.subject)
        let values = (0..<topic.count).map { index in
            let tokens = TokenShard(index: index, count: topic.count)
            return Self.shard(tokens, of: event, kind: ask.list.kind, read, state)
        }
        // The shards may be larger than the configuration allows records to be. The last one is the
        // longest.
        guard let last = values.last,
            let decoded = decoded(shard: last, key: key, of: topic, now: now)
        else { return false }
        let claim = self.claim(read.id, for: request, &state)
        state.traces.split(request.origin)
        let traceparent = self.traceparent(ofShardsOf: event, request, state)
        for (index, value) in values.enumerated() {
            state.tracker.retain(claim)
            var draft = RecordDraft(.events, key: key, value: value, claims: [claim])
            draft.partition = topic.partition(ofShard: index)
            draft.traceparent = traceparent
            state.outbox.write(draft)
            state.outbox.keep(decoded.shard(UInt16(index), of: topic.count))
        }
        state.tracker.release(claim)
        if state.outbox.shardBreaker == .halfOpen { state.outbox.shardBreaker = .open }
        return true
    }

    /// The spans of a shard belong to the event's own, if that is traced here.
    private func traceparent(
        ofShardsOf event: Event, _ request: FanOutRequest, _ state: borrowing PipelineState
    ) -> String? {
        state.traces.context(of: request.origin)?.text
            ?? Correlation(checking: nil, traceparent: event.traceparent).traceparent
    }

    /// The value of a shard, which is an event in Lamplighter's own format; its key is the subject, or
    /// the installation, which the value names as well.
    private static func shard(
        _ tokens: TokenShard, of event: Event, kind: String?, _ read: RecordRead,
        _ state: borrowing PipelineState
    ) -> [UInt8] {
        var draft = EventDraft(event, app: state.routing.name(of: event.app))
        draft.id = Correlation(checking: event.id, traceparent: nil).id
        // The lists of a kind-wide event are split one by one.
        if let kind { draft.kinds = [kind] }
        let source = state.source(read.position)
        draft.shard = EventShard(
            tokens: tokens, topic: source.topic, partition: source.partition,
            offset: source.offset,
            notBefore: event.delay > .zero ? read.now.wall + event.delay : nil,
            writtenAt: event.writtenAt)
        return EventEncoder.value(draft)
    }

    /// Makes the pushes of a shard name the event that was split: their `apns-id` and collapse ID
    /// are then the same whoever reads the shard, and however often.
    @inline(never)
    mutating func setSource(
        _ shard: EventShard, of request: inout FanOutRequest, now: Now, _ state: inout PipelineState
    ) {
        let source = DeadLetter.Source(
            topic: shard.topic, partition: shard.partition, offset: shard.offset)
        if let position = state.position(source) { request.origin = position }
        guard let notBefore = shard.notBefore, notBefore > now.wall else { return }
        // No delay is longer than the longest that is configured, whoever wrote the record.
        request.notBefore = now.monotonic + min(notBefore - now.wall, delayMax)
    }

    /// Fans out here the shards that Kafka did not take, such as for want of the right to write.
    /// The oldest go first, since their pushes are the next to expire.
    mutating func fanOutRefusedShards(
        _ state: inout PipelineState, now: Now
    ) {
        while !underWay.isFull, let shard = state.outbox.popRefusedShard() {
            state.counters.shardsRefused += 1
            state.countRead()
            shard.record.key.withUnsafeBytes { subject in
                fanOut(
                    shard: shard.shard!.about(subject), claim: shard.claims[0], now: now, &state)
            }
        }
    }

    /// Fans out one shard; the claim passes to its fan-out.
    private mutating func fanOut(
        shard event: Event, claim: OffsetClaim, now: Now, _ state: inout PipelineState
    ) {
        let list =
            event.subject.isEmpty
            ? EventList(kind: event.kinds[0], of: event, state)
            : EventList(subjectOf: event, state)
        let count = state.audience.count(onList: list)
        let topic = state.settings.shards!.binding
        let isOfDroppedTopic = isOfDroppedTopic(event, state)
        if isOfDroppedTopic || dropped.isDropped(event) {
            tally.ended(.dropped, topic: topic)
            state.counters.subjectsDropped += 1
            return state.tracker.release(claim)
        }
        guard event.expiresAt > now.wall, count > 0 else {
            tally.ended(count > 0 ? .expired : .unmatched, topic: topic)
            return state.tracker.release(claim)
        }
        let request = request(event, of: list, position: nil, now: now, &state)
        // It has no record of its own that the next owner could go on with.
        hasFurtherLists = true
        defer { hasFurtherLists = false }
        let outcome = startFanOut(request, count: count, claim: claim, now: now, &state)
        note(outcome, of: event, topic: topic, now: now)
    }

    /// Whether it is a shard of an event that came from a topic which an operator drops, wherever the
    /// shard itself stands.
    // Not inlined: hardly any event is a shard.
    @inline(never)
    func isOfDroppedTopic(_ event: Event, _ state: borrowing PipelineState) -> Bool {
        guard let source = event.shard?.topic else { return false }
        return zip(state.settings.eventTopics, dropped.topics).contains { $1 && $0 == source }
    }

    /// What a reader of the shard would decode, without the bytes that are lent to it; nil if it could
    /// not. It is kept until Kafka has the shard: what is fanned out here in its place does not depend
    /// on settings that a reload has changed meanwhile.
    private mutating func decoded(
        shard value: [UInt8], key: [UInt8], of topic: ShardTopic, now: Now
    ) -> Event? {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                let record = EventRecord(
                    binding: topic.binding, key: key, value: value, timestamp: now.wall)
                var event = try? decoder.decode(record, now: now.wall) { _ in nil }
                event?.id = nil
                event?.traceparent = nil
                return event?.about(UnsafeRawBufferPointer(start: nil, count: 0))
            }
        }
    }
}

extension Event {
    /// Another shard of the event that this one is a shard of.
    fileprivate func shard(_ index: UInt16, of count: UInt16) -> Event {
        var event = self
        event.shard?.tokens = TokenShard(index: index, count: count)
        return event
    }
}
