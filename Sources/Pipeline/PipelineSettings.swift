// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
package import Delivery
package import Intake
internal import Ledger
package import PushModel
internal import RecordFormats

/// The bounds and rules that the pipeline obeys. Every queue, buffer and retry has its bound here.
///
/// What a reload may change is in `live`, and nothing else is: to adopt a reload is to assign it.
@dynamicMemberLookup
package struct PipelineSettings: Sendable {
    package var sizes = Sizes()
    package var live = Live()
    /// The topic that shards are written to; nil splits no event.
    package var shards: ShardTopic?
    /// Seeds jitter and hash tables.
    package var seed: UInt64 = 0
    /// The operator's own events, which this worker writes; nil writes none.
    package var canary: CanarySettings?
    /// Which events are traced; nil traces none.
    package var tracing: TraceSettings?
    /// Whether pushes that end are noted, for the topic of outcomes.
    package var notesEnds = false
    /// The names of the subscribed topics in their order, with which dead letters say where an
    /// event came from.
    package var eventTopics: [String] = []

    package init() {}

    /// The bounds of tables, buffers and waits, which stay as they are while the process runs.
    package struct Sizes: Sendable {
        /// The most pushes that wait or are in flight.
        package var slots = 65_536
        /// The most events that are on their way through their tokens.
        package var fanOutsMax = 4096
        /// An event of at most this many tokens is fanned out at once, without a cursor.
        package var immediateFanOutMax = 64
        /// The most bytes of payloads kept.
        package var payloadBytesMax = 64 << 20
        /// The most suppressions that wait for Kafka's acknowledgement; also the most shards, and the
        /// most deferred pushes.
        package var unacknowledgedMax = 32_768
        /// The most bytes of shards that wait for acknowledgement: above that, events are not split.
        package var shardBytesMax = 16 << 20
        /// The most bytes of deferred pushes that wait for acknowledgement: above that, nothing more is
        /// deferred.
        package var deferralBytesMax = 64 << 20
        /// The most bytes of dead letters that wait for acknowledgement. Letters in the second half go
        /// without their events; failures that find no room there are merged.
        package var deadLetterBytesMax = 32 << 20
        /// How long a waiting push may hold an offset; then it is deferred.
        package var holdMax = Duration.seconds(10)
        /// The most bytes of payloads of deferred pushes in memory.
        package var deferredBytesMax = 64 << 20
        /// The most bytes for what is remembered of deferred and accepted payloads, so that the newest
        /// is sent last.
        package var payloadOrderBytesMax = 32 << 20
        /// An event is also owed to tokens that register up to this long after it.
        package var registrationGrace = Duration.seconds(2)
        /// The most bytes of remembered events of that time that have filters, an expiry or a payload
        /// of their own; above that, reading events stops.
        package var recentEventBytesMax = 64 << 20
        /// Cells of the table that remembers recent subjects; a power of two.
        package var recentSubjectCells = 1 << 20
        /// The most registrations that are kept for the events of partitions to come. Beyond that, the
        /// events of the last grace period of such a partition are pushed to all their tokens again.
        package var recentRegistrationsMax = 65_536
        /// The back-off after a connection was lost; the push goes to another one.
        package var resendBackoff = Backoff(least: .milliseconds(50), most: .seconds(30))
        /// The most failing tokens in one dead letter.
        package var deadLetterTokensMax = 500
        /// A dead letter is written at the latest this long after its first token.
        package var deadLetterDelay = Duration.milliseconds(200)

        package init() {}

        /// Above this many bytes of letters, further letters go without their events.
        var wholeLetterBytesMax: Int { deadLetterBytesMax / 2 }

        /// How many slots fan-outs leave free, so that events of few tokens go at once beside the largest
        /// audience: room for 32 such events, or a sixteenth of all slots if that is less, but for one
        /// event at least; never more than a quarter.
        var slotsKeptForEvents: Int {
            min(32 * immediateFanOutMax, max(immediateFanOutMax + 1, slots / 16), slots / 4)
        }

        /// The share of the slots that is kept for deferred pushes.
        package var deferredSlots: Int { slots / 8 }
    }

    /// The rules that may change while pushes are under way.
    package struct Live: Sendable {
        /// An event of more tokens is split into shards, where there is a topic for them.
        package var splitAbove = 100_000
        /// Over how long an event of more than `spreadAbove` tokens is sent; zero sends it at once.
        package var spread = Duration.zero
        package var spreadAbove = 1000
        /// An event of more tokens is withheld until an operator releases it.
        package var fanOutMax = Int.max
        /// How far the pushes without a payload to one token are apart.
        package var minimumGaps = MinimumGaps()
        /// How many pushes a token should be sent a day.
        package var budgets = PushBudgets()
        /// What is paused, dropped and limited beside what operators have asked for.
        package var restrictions: [ConfiguredRestriction] = []
        /// The most deferred pushes that this worker keeps in memory.
        package var deferredMax = 1_000_000
        package var attemptsMax = 10
        /// The back-off after a 5xx, for that push alone.
        package var retryBackoff = Backoff(least: .seconds(1), most: .seconds(900))
        /// The back-off after `TooManyRequests`, for that token alone.
        package var coolDownBackoff = Backoff(least: .seconds(10), most: .seconds(900))
        /// The open times of the circuit breakers of pools and routes.
        package var breakerBackoff = Backoff(least: .seconds(1), most: .seconds(900))
        package var tokenGuard = TokenGuard.Limits()
        /// The headers of each push type.
        package var wire = WireRules()
        /// The original event goes into its dead letter if it is at most this long.
        package var deadLetterEventBytesMax = 65_536
        /// What fails within this time of a dead letter that says the same is counted; zero writes a
        /// letter each time.
        package var deadLetterRepeatAfter = Duration.zero
        /// Which of the accepted pushes are noted beside those that have failed.
        package var outcomeSample = OutcomeSample(share: 0.01)
        package var events = EventSettings()

        package init() {}
    }

    /// Both parts are read and filled in as one; the pipeline itself says which it means.
    package subscript<Value>(dynamicMember path: WritableKeyPath<Sizes, Value>) -> Value {
        get { sizes[keyPath: path] }
        set { sizes[keyPath: path] = newValue }
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<Live, Value>) -> Value {
        get { live[keyPath: path] }
        set { live[keyPath: path] = newValue }
    }

    /// Traps unless the settings are what every part takes for granted. The configuration is
    /// checked when it is read; this finds mistakes in the code that fills in the settings.
    func check() {
        precondition(
            sizes.slots > 0 && sizes.immediateFanOutMax > 0,
            "there is room for at least one push, and an event has at least one token")
        precondition(
            sizes.fanOutsMax > 0 && live.splitAbove > 0 && sizes.unacknowledgedMax > 0,
            "fanOutsMax, splitAbove and unacknowledgedMax are above zero")
        precondition(
            live.attemptsMax > 0 && sizes.deadLetterTokensMax > 0,
            "attemptsMax and deadLetterTokensMax are above zero")
        precondition(
            sizes.recentSubjectCells > 0
                && sizes.recentSubjectCells & (sizes.recentSubjectCells - 1) == 0,
            "the count of recentSubjectCells is a power of two")
        precondition(
            sizes.holdMax > .zero && sizes.registrationGrace >= .zero
                && sizes.deadLetterDelay >= .zero,
            "holdMax is above zero, registrationGrace and deadLetterDelay are not below")
    }

    /// How long partitions that are given up may keep their group waiting for APNs's answers.
    package static let drainMax = Duration.seconds(2)
}

/// A topic of events in Lamplighter's own format, to which this worker may write shards.
package struct ShardTopic: Sendable, Equatable {
    /// The index of the topic's binding.
    package var binding: Int
    package var partitions: Int32

    package init(binding: Int, partitions: Int32) {
        precondition(
            binding >= 0 && partitions > 0,
            "the shards' topic has a binding and at least one partition")
        self.binding = binding
        self.partitions = partitions
    }

    /// The most shards of an event: for each of them a worker looks at every token of the event.
    private static let shardsMax: Int32 = 16
    var count: UInt16 { UInt16(min(partitions, Self.shardsMax)) }

    /// The partition that a shard is written to. Shards are spread over all partitions, since
    /// neighbouring partitions tend to be one worker's.
    func partition(ofShard index: Int) -> Int32 {
        precondition(
            index >= 0 && index < Int(count), "a shard's index lies below the count of shards")
        return Int32(index) * partitions / Int32(count)
    }
}

extension EventSettings {
    /// The lists that such events need.
    var furtherLists: FurtherLists {
        var lists: FurtherLists = []
        if allowKindWide { lists.insert(.kindWide) }
        if allowInstallations { lists.insert(.installations) }
        return lists
    }
}
