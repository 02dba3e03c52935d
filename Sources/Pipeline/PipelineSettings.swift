// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import Intake
internal import Ledger
package import PushModel
internal import RecordFormats

/// The bounds and rules that the pipeline obeys. Every queue, buffer and retry has its bound here.
package struct PipelineSettings: Sendable {
    /// Pushes that wait or are in flight, at most.
    package var slots = 65_536
    /// Events that are on their way through their tokens, at most.
    package var fanOutsMax = 4096
    /// An event of at most this many tokens is fanned out at once, without a cursor.
    package var immediateFanOutMax = 64
    /// An event of more tokens is split into shards, where there is a topic for them.
    package var splitAbove = 100_000
    /// Where shards are written; nil splits nothing.
    package var shards: ShardTopic?
    /// Bytes of payloads kept, at most.
    package var payloadBytesMax = 64 << 20
    /// Suppressions that wait for Kafka's acknowledgement, at most; and as many shards, and as many
    /// deferred pushes.
    package var unacknowledgedMax = 32_768
    /// Bytes of shards that wait for it, at most: above that, events are not split.
    package var shardBytesMax = 16 << 20
    /// Bytes of deferred pushes that wait for it: above that, nothing more is deferred.
    package var deferralBytesMax = 64 << 20
    /// Bytes of dead letters that wait for it, at most. In the second half are letters without their
    /// events; what finds no room there is merged with its like.
    package var deadLetterBytesMax = 32 << 20
    /// No waiting push holds an offset longer: it is deferred.
    package var holdMax = Duration.seconds(10)
    /// Deferred pushes that this worker keeps in memory, at most.
    package var deferredMax = 1_000_000
    /// Bytes of their payloads, at most.
    package var deferredBytesMax = 64 << 20
    /// Bytes kept of payloads that were deferred or accepted, so that the newest is sent last.
    package var payloadOrderBytesMax = 32 << 20
    /// An event is owed also to tokens registered up to this long after it.
    package var registrationGrace = Duration.seconds(2)
    /// Bytes kept of the events of that time that have filters, an expiry or a payload of their own,
    /// at most; reading events stops.
    package var recentEventBytesMax = 64 << 20
    /// Cells of the table that remembers recent subjects; a power of two.
    package var recentSubjectCells = 1 << 20
    package var attemptsMax = 10
    /// After a 5xx, for that push alone.
    package var retryBackoff = Backoff(least: .seconds(1), most: .seconds(900))
    /// After a connection was lost, on another one.
    package var resendBackoff = Backoff(least: .milliseconds(50), most: .seconds(30))
    /// After `TooManyRequests`, for that token alone.
    package var coolDownBackoff = Backoff(least: .seconds(10), most: .seconds(900))
    /// Of credential, topic and pool breakers.
    package var breakerBackoff = Backoff(least: .seconds(1), most: .seconds(900))
    package var tokenGuard = TokenGuard.Limits()
    /// Headers by push type, in the order of `PushType.all`.
    package var wireDefaults = WireDefaults()
    /// Failing tokens in one dead letter, at most.
    package var deadLetterTokensMax = 500
    /// The original event goes into its dead letter if it is at most this long.
    package var deadLetterEventBytesMax = 65_536
    /// A dead letter is written at the latest this long after its first token.
    package var deadLetterDelay = Duration.milliseconds(200)
    /// Seeds jitter and hash tables.
    package var seed: UInt64 = 0
    package var events = EventSettings()
    /// Where dead letters say an event came from, by position in the list of subscribed topics.
    package var eventTopics: [String] = []

    package init() {}

    /// What every part takes for granted. The configuration is checked when it is read; these are the
    /// mistakes of whoever fills in the settings.
    func check() {
        precondition(slots > 0 && immediateFanOutMax > 0, "no room for one event's pushes")
        precondition(fanOutsMax > 0 && splitAbove > 0 && unacknowledgedMax > 0, "a bound of none")
        precondition(attemptsMax > 0 && deadLetterTokensMax > 0, "a push is tried once at least")
        precondition(
            recentSubjectCells > 0 && recentSubjectCells & (recentSubjectCells - 1) == 0,
            "the cells of recent subjects are no power of two")
        precondition(
            holdMax > .zero && registrationGrace >= .zero && deadLetterDelay >= .zero,
            "a time below zero")
        precondition(
            wireDefaults.priorities.count == PushType.all.count
                && wireDefaults.expirations.count == PushType.all.count,
            "each push type has its headers")
    }

    /// With the rules of `other` that may change while pushes are under way.
    func adopting(_ other: PipelineSettings) -> PipelineSettings {
        var adopted = self
        adopted.events.changeTTL = other.events.changeTTL
        adopted.events.payloadTTL = other.events.payloadTTL
        adopted.events.recordBytesMax = other.events.recordBytesMax
        adopted.splitAbove = other.splitAbove
        adopted.deferredMax = other.deferredMax
        adopted.attemptsMax = other.attemptsMax
        adopted.retryBackoff = other.retryBackoff
        adopted.coolDownBackoff = other.coolDownBackoff
        adopted.breakerBackoff = other.breakerBackoff
        adopted.wireDefaults = other.wireDefaults
        adopted.deadLetterEventBytesMax = other.deadLetterEventBytesMax
        adopted.tokenGuard = other.tokenGuard
        return adopted
    }

    /// How long partitions that are given up may keep their group waiting: until the grace period
    /// of every event is over, and at least two seconds for APNs's answers. The fraction of a
    /// second is for the turns of a busy machine.
    package var drainMax: Duration {
        max(.seconds(2), OffsetTracker.graceEndsWithin(registrationGrace)) + .milliseconds(250)
    }

    /// Above this many bytes of letters, letters do without their events.
    var wholeLetterBytesMax: Int { deadLetterBytesMax / 2 }

    /// The share of the slots that is kept for deferred pushes.
    package var deferredSlots: Int { slots / 8 }
}

/// A topic of events of ours, to which this worker may write the parts of an event.
package struct ShardTopic: Sendable, Equatable {
    /// Position of its binding.
    package var binding: Int
    package var partitions: Int32

    package init(binding: Int, partitions: Int32) {
        precondition(binding >= 0 && partitions > 0, "a topic of ours has partitions")
        self.binding = binding
        self.partitions = partitions
    }

    /// Each worker looks at every token of the event for each of its shards.
    private static let shardsMax: Int32 = 16
    var count: UInt16 { UInt16(min(partitions, Self.shardsMax)) }

    /// Spread over all partitions: neighbours tend to be one worker's.
    func partition(ofShard index: Int) -> Int32 {
        precondition(index >= 0 && index < Int(count), "no such shard")
        return Int32(index) * partitions / Int32(count)
    }
}

/// The headers that the configuration may change, for each push type.
package struct WireDefaults: Sendable {
    /// 0 leaves `apns-priority` out.
    package var priorities: [UInt8] = PushType.all.map(\.priority)
    package var expirations: [ExpirationRule] = PushType.all.map(\.expiration)

    package init() {}

    package func priority(_ type: PushType) -> UInt8 { priorities[Int(type.rawValue)] }

    /// APNs refuses a background push of priority 10, so an urgent event that reaches a device token
    /// beside its controls is sent there with 5.
    package func priority(_ type: PushType, asked: UInt8?) -> UInt8 {
        let priority = asked ?? priority(type)
        return type == .background ? min(priority, 5) : priority
    }

    package func expiration(_ type: PushType) -> ExpirationRule {
        expirations[Int(type.rawValue)]
    }
}
