// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import KafkaLog
internal import OTLPExporter
package import Pipeline
package import PushModel
internal import SchemaRegistry

/// The state of a worker at one moment: what probes, metrics and the status report are made of. The
/// planner thread fills it in when it is asked. What `/status` says of it is written by the same types.
package struct WorkerStatus: Sendable {
    var phase: WorkerControl.Phase
    var at: WallTime
    var index: Index
    /// Whether the worker is a member of its consumer group, with partitions or without.
    var hasJoinedGroup: Bool
    /// How long the group has not said which partitions are this worker's, which reads nothing
    /// meanwhile; nil if it has.
    var groupWait: Duration?
    /// The subscribed topics that Kafka does not know.
    var missingTopics: [String] = []
    /// The partitions that stand before a transaction that is not over.
    var openTransactions: [OpenTransaction] = []
    var partitions: [Partition] = []
    /// How many partitions the topics have that the group reads; nil where Kafka has not said.
    var consumedPartitions: Int?
    /// How many of the worker's partitions cannot be read at the moment.
    var unavailablePartitions = 0
    /// The partitions that wait for schemas, the longest held first.
    var held: [HeldPartition] = []
    /// What operators have paused, dropped and limited.
    var restrictions: [Restriction.Scope: Restriction] = [:]
    /// The last events that were withheld for their many tokens and have not been released, the newest
    /// last.
    var withheldEvents: [WithheldEvent] = []
    /// Nil where no schema registry is configured.
    var schemas: Schemas?
    var counters: Counters
    var load: PushPipeline.Load
    var breakers: [TrippedBreaker] = []
    var troubledTopics: [TroubledTopic] = []
    var transports: [TransportCounts] = []
    /// The times from sending a request to APNs to taking in its answer.
    var roundTrips = LatencyHistogram()
    /// How long connects to APNs took.
    var connectTimes = LatencyHistogram()
    /// The times from the event's timestamp in Kafka to the acceptance of its push, by push type.
    var eventToAccepted: [(type: PushType, times: LatencyHistogram)] = []
    /// Events that were read, by topic and outcome.
    var events: [EventCount] = []
    /// Ended pushes by app, push type, outcome and reason.
    var pushes: [PushTally.Count] = []
    /// The credentials' pools of connections to APNs.
    var pools: [Pool] = []
    /// Who has asked for most pushes in the last minute or two.
    var demand = PushDemand()
    /// Events whose subject nobody shows, by topic.
    var unmatched: [UnmatchedSubjects] = []
    /// Events whose subject is shown by no token that they are for, by topic.
    var passedOver: [UnmatchedSubjects] = []
    /// What events had that their bindings could not judge.
    var recordNotes: [RecordNoteCount] = []
    /// How many records of each topic were left out for want of a field since the start.
    var absences: [Absence] = []
    /// The same by topic and kind: all of them, while those by message are the first few of each kind.
    var recordNoteTotals: [RecordNoteTotal] = []
    /// Today's pushes, of each push type that has a budget.
    var budgets: [BudgetUse] = []
    /// The subjects with the most pushes above their tokens' budgets today, the first of them first.
    var subjectsOverBudget: [SubjectOverBudget] = []
    /// Records that are left to read, by topic: those of the worker's partitions, or of all where
    /// each worker reads all.
    var unread: [(topic: String, count: Int)] = []
    /// The topics of events that are left in Kafka for the sake of the others.
    var topicTurns: [TopicTurn] = []
    /// Records and rows of compacted topics that were set aside, by topic and reason.
    var setAside: [SetAsideCount] = []
    /// Records that are in other partitions than those of their keys, by topic.
    var misplaced: [MisplacedRecords] = []
    /// Dead letters that were written.
    var deadLetters: [LetterKind: Int] = [:]
    /// Records of events that were read again after a rebalance or a restart of the consumer.
    var redelivered = 0
    /// The phase of each credential's circuit breaker, and of those of the routes that have opened.
    var breakerPhases: [BreakerPhase] = []
    /// The memory of each part in bytes.
    var memory: [(part: String, bytes: Int)] = []
    /// The events topics and the deferred one.
    var consumedTopics: [String] = []
    /// The topics that the worker writes to.
    var producedTopics: [String] = []
    /// Whether there is room for the pushes of another event, so that it may be read.
    var hasRoomForEvents = true
    /// Whether events are read though the restrictions could not be.
    var lacksRestrictions = false
    /// The operator's own events; nil where none are written.
    var canary: CanaryStatus?
    /// What would have been sent and written; nil where it is.
    var shadow: Shadow?
    /// What was written of the ends of pushes; nil where nothing is.
    var outcomes: Outcomes?
    /// What is kept from ending since the worker's clock may be ahead.
    var clockDoubt = ClockDoubt()
    /// How long an event that nothing delays may hold its offset: the longest wait of a push, or
    /// the registration grace period.
    var holdMax = Duration.seconds(10)
    /// The push types that the configuration lets wait for nothing: no minimum gap, delay or spread.
    var promptTypes: Set<PushType> = []
    /// What the worker had done at an earlier moment.
    var earlier = Earlier()
    var process = Process()
    /// What was traced and exported; nil if nothing is exported.
    var export: Export?
    /// The threads that do not turn any more.
    var stuckThreads: [StuckThread] = []
    /// Whether the planner has answered. If not, what it fills in is of an earlier moment.
    var isCurrent = true
    /// Whether the planner has not turned yet: it still waits for Kafka's topics.
    var isStarting = false

    /// How many dead letters were written, by reason in alphabetical order.
    var lettersByReason: [(String, Int)] {
        let counts = deadLetters.reduce(into: [:]) { $0[$1.key.reason, default: 0] += $1.value }
        return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The records of events that are not committed yet.
    var lag: Int64 { partitions.reduce(0) { $0 + ($1.lag ?? 0) } }

    /// A partition of events that is not read, since its next record waits for its schema.
    struct HeldPartition: Sendable {
        var topic: String
        var partition: Int32
        /// The record's.
        var offset: Int64
        var schema: UInt32
        /// Why the schema registry does not give it; nil while it is asked for the first time.
        var cause: String?
        var held: Duration
    }

    struct Schemas: Sendable {
        var known: Int
        var awaited: Int
        /// Why the registry cannot be reached; nil if it can.
        var failure: String?
        var counts: SchemaSource.Counts
    }

    struct Export: Sendable {
        var traced = TraceCounts()
        /// Spans that found no room on their way to the exporter.
        var spansDropped = 0
        var collector = ExportCounters.Counts()
    }

    /// An earlier moment to compare with, for rates and trends: by default the start.
    struct Earlier: Sendable {
        /// The value of `Index.elapsed` then.
        var elapsed = Duration.zero
        /// The value of `Index.elapsed` when a record of the index was last known to have been read.
        var readAt = Duration.zero
        var counters = Counters()
        var lag: Int64 = 0
        var setAside: [SetAsideCount] = []
        /// What had been set aside when the index was complete for the first time.
        var replayed: [SetAsideCount] = []
        var events: [EventCount] = []
        var deadLetters: [LetterKind: Int] = [:]
        var recordNotes: [RecordNoteCount] = []
        var roundTrips = LatencyHistogram()
        var eventToAccepted: [(type: PushType, times: LatencyHistogram)] = []
    }

    struct StuckThread: Sendable, Equatable {
        /// The thread's name, such as `the planner`.
        var thread: String
        var silence: Duration
    }

    package struct Process: Codable, Sendable {
        /// The worker's name, as in its log.
        package var id = ""
        package var group = ""
        package var version = ""
        package var commit = ""
        package var startedAt = WallTime(milliseconds: 0)
        package var residentBytes = 0
        /// The CPU time of all threads since the start.
        var cpuTime = Duration.zero
        /// The open file descriptors; nil where the kernel does not tell.
        var fileDescriptors: Int?
        /// How many may be open.
        var fileDescriptorsMax: Int?

        private enum CodingKeys: String, CodingKey {
            case id, group, version, commit, startedAt, residentBytes
        }
    }

    package struct TokenCount: Codable, Sendable {
        package var app: String
        /// Its name, as that of the class: a newer worker may have others.
        package var environment: String
        package var `class`: String
        package var tokens: Int
    }

    /// The index of tokens, and the compacted topics that it is read from.
    package struct Index: Codable, Sendable {
        package var tables: [Table] = []
        package var recordsRead: UInt64 = 0
        package var tokens = 0
        /// The same by app, environment and class, without those of which there is none; nil in the
        /// report of a worker from before they were counted apart.
        package var tokensOf: [TokenCount]? = []
        package var subjects = 0
        package var subscriptions = 0
        package var registrations = 0
        var suppressions = 0
        package var bytes = 0
        /// How long the worker has been reading.
        var elapsed = Duration.zero
        /// How old the snapshot was that it was begun with; nil where everything was read from Kafka.
        @Seconds package var snapshotAge: Duration? = nil
        /// Whether no broker has answered the last request.
        var isUnanswered = false
        /// Why no connection to Kafka can be made; nil if none has failed since one of the tables was
        /// last known to be complete.
        var connectionFailure: ConnectionFailure?

        /// `share` and `timeLeft` as a report has them.
        @Nullable var toldShare: Double? = nil
        @Seconds var toldTimeLeft: Duration? = nil

        private enum CodingKeys: String, CodingKey {
            case recordsRead, tokens, tokensOf, subjects, subscriptions, registrations, bytes
            case tables = "topics"
            case snapshotAge = "snapshotSeconds"
            case toldShare = "share"
            case toldTimeLeft = "secondsLeft"
        }

        /// As it is reported.
        var told: Index {
            var index = self
            (index.toldShare, index.toldTimeLeft) = (share, timeLeft)
            return index
        }

        /// The records that are not read yet.
        var recordsLeft: Int { tables.reduce(0) { $0 + Int(clamping: $1.unread) } }

        /// The share of the topics' records that has been read, from 0 to 1. It means something only
        /// while they are read for the first time; nil before the first fetch.
        var share: Double? {
            let all = Double(recordsRead) + Double(recordsLeft)
            return all > 0 ? Double(recordsRead) / all : nil
        }

        /// How long reading the rest takes at the average speed so far.
        var timeLeft: Duration? {
            guard let share, share > 0 else { return nil }
            return elapsed * ((1 - share) / share)
        }
    }

    struct EventCount: Sendable {
        var topic: String
        /// `matched`, `unmatched`, `expired` and so on.
        var outcome: String
        var count: Int
    }

    struct Absence: Sendable {
        var topic: String
        var field: String
        var count: Int
    }

    struct RecordNoteCount: Sendable {
        var topic: String
        /// What it was, without anything of a record's content.
        var message: String
        var count: Int
    }

    struct RecordNoteTotal: Sendable {
        var topic: String
        var kind: String
        var count: Int
    }

    struct TopicTurn: Sendable {
        var topic: String
        /// How often it had to wait.
        var waits: Int
        var isWaiting: Bool
    }

    package struct SetAsideCount: Codable, Sendable {
        package var topic: String
        /// What is counted: `records`, or `rows` of records whose other rows are in use.
        package var unit: String
        package var reason: String
        package var count: Int
    }

    /// The phase of the circuit breaker of a credential in one environment, or of one of its APNs
    /// topics there.
    struct BreakerPhase: Sendable {
        var credential: String
        var environment: PushEnvironment
        /// Whether it is that of a credential's broadcasts to channels.
        var isForBroadcasts = false
        /// The app of the APNs topic, and the topic; both are empty for a credential's breaker.
        var app = ""
        var apnsTopic = ""
        var phase: CircuitBreaker.Phase
    }

    package struct UnmatchedSubjects: Codable, Sendable {
        package var topic: String
        package var count: Int
        /// The latest ones, newest last; at most a few.
        package var sample: [EventTally.Sighting]
    }

    package struct Table: Codable, Sendable {
        package var topic: String
        package var partitions: Int
        /// How many records are left to the end of the topic, as of the last fetches.
        package var unread: Int64
        /// Everything that was written longer ago than this has been read.
        @Seconds package var age: Duration

        private enum CodingKeys: String, CodingKey {
            case topic, partitions, unread
            case age = "ageSeconds"
        }
    }

    package struct Partition: Codable, Sendable {
        package var topic: String
        package var partition: Int32
        /// The distance between the committed offset and the end of the partition; nil if nothing was
        /// fetched yet.
        @Nullable package var lag: Int64?
    }
}
