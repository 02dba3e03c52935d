// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// A part of an event that was written again, and the event as it was read.
struct SimulatedShard {
    let event: SimulatedEvent
    let whole: SimulationModel.ReadEvent
}

/// Events of many tokens, which are sent by both workers.
extension SimulationWorker {
    /// Notes the shards that an event was written again as.
    ///
    /// - Returns: the parts of the event that are left to the readers of its shards.
    func noteShards(
        from position: Int, of whole: SimulationModel.ReadEvent, topic: Int
    ) -> [SimulatedEvent] {
        var split: [SimulatedEvent] = []
        for record in pipeline.records[position...] where record.topic == .events {
            let text = String(decoding: record.value!, as: UTF8.self)
            var event = whole.event
            event.source = topic
            event.tokens = TokenShard(
                index: Self.number(after: "\"index\":", in: text),
                count: Self.number(after: "\"of\":", in: text))
            // The lists of a kind-wide event are split one by one.
            if event.subject == nil {
                event.kinds = event.kinds.filter { text.contains("\"kinds\":[\"\($0)\"]") }
            }
            split.append(event)
            shards[record.ticket] = SimulatedShard(event: event, whole: whole)
            model.split(whole, ticket: record.ticket)
        }
        return split
    }

    private static func number(after name: String, in text: String) -> UInt16 {
        UInt16(text.text(after: name).prefix { $0.isNumber })!
    }

    /// Notes the shards that Kafka has not taken and whose tokens are therefore this worker's.
    func takeBackShards(of log: SimulatedKafka, now: Now) -> [SimulatedEvent] {
        let tickets = shards.keys.filter { pipeline.state.outbox.tickets[$0] == nil }.sorted()
        var events: [SimulatedEvent] = []
        for ticket in tickets {
            let shard = shards.removeValue(forKey: ticket)!
            let isDropped =
                restrictions.isDropped(
                    topic: Self.topics[Int(log.partitions[shard.whole.partition].topic)])
                || restrictions.isDropped(subject: shard.event.subject)
            // What an operator drops is owed as little as what has expired.
            let deadline =
                isDropped ? now.monotonic : now.monotonic + (shard.event.expiresAt - now.wall)
            sequence += 1
            if let payload = shard.event.payload, deadline > now.monotonic,
                model.isShown(shard.event.subject!)
            {
                payloadsReadAt = max(payloadsReadAt, now.wall)
                bodies[payload.body] = (shard.event, sequence)
            }
            model.tookBack(
                SimulationModel.ReadEvent(
                    event: shard.event, partition: shard.whole.partition,
                    offset: shard.whole.offset, readAt: now.monotonic, deadline: deadline,
                    stamp: payloadsReadAt, sequence: sequence),
                ticket: ticket)
            events.append(shard.event)
        }
        return events
    }
}
