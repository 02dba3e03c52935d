// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog
package import Pipeline
package import PushModel

/// What `/status` answers: the state of one worker, as JSON. A figure has the type that it has in the
/// `WorkerStatus`, which says how it is written; a type of its own has what is told in words, or of the
/// last seconds. docs/status.md describes each member, and whoever adds one describes it there.
package struct StatusReport: Codable, Sendable {
    /// The version of the format. A report of another one cannot be read.
    package enum Version: Int, Codable, Sendable {
        case first = 1
    }

    package var v = Version.first
    package var at: WallTime
    package var worker: WorkerStatus.Process
    package var phase: String
    package var summary: String
    package var problems: [Problem]
    package var index: WorkerStatus.Index
    package var partitions: [WorkerStatus.Partition]
    package var unavailablePartitions: Int
    /// Nil in the report of a worker from before it was told.
    package var membership: Membership?
    package var rates: Rates
    package var totals: [String: Int]
    package var latency: Latency
    package var waiting: PipelineLoad
    package var pools: [WorkerStatus.Pool]
    package var breakers: [Breaker]
    package var topics: [Topic]
    package var unmatched: [WorkerStatus.UnmatchedSubjects]
    /// Nil in the report of a worker from before they were told from those that match.
    package var passedOver: [WorkerStatus.UnmatchedSubjects]?
    package var setAside: [WorkerStatus.SetAsideCount]
    /// Nil in the report of a worker from before they were counted.
    package var misplaced: [MisplacedRecords]?
    package var pushes: [PushTally.Count]
    /// Nil in the report of a worker from before there were restrictions.
    package var restrictions: [Restricted]?
    /// Nil in the report of a worker from before there were budgets.
    package var budgets: [BudgetUse]?
    package var subjectsOverBudget: [SubjectOverBudget]?
    /// Nil in the report of a worker from before it was followed.
    package var demand: PushDemand?
    /// Nil where no canaries are written.
    package var canary: Canary?
    /// Nil where pushes are sent.
    package var shadow: WorkerStatus.Shadow?
    /// Nil where no outcomes are written.
    package var outcomes: WorkerStatus.Outcomes?

    /// What the worker is to its consumer group.
    package enum Membership: String, Codable, Sendable {
        case member
        /// One without partitions. There are others: a group gives its only member all of them.
        case spare
        /// One that waits for the group to give out its partitions.
        case waiting
        /// None, or Kafka is silent, which will have it so.
        case outside
    }

    package struct Rates: Codable, Sendable {
        package var eventsPerSecond: Double
        package var acceptedPerSecond: Double
        @Seconds package var over: Duration

        private enum CodingKeys: String, CodingKey {
            case eventsPerSecond, acceptedPerSecond
            case over = "overSeconds"
        }
    }

    package struct Latency: Codable, Sendable {
        package var eventToAccepted: [Times]
        package var roundTrip: Times
    }

    package struct Times: Codable, Sendable {
        /// The push type; nil of round trips.
        package var type: String?
        package var count: UInt64
        @Seconds package var p50: Duration?
        @Seconds package var p99: Duration?

        private enum CodingKeys: String, CodingKey {
            case type, count
            case p50 = "p50Seconds"
            case p99 = "p99Seconds"
        }
    }

    package struct Canary: Codable, Sendable, Equatable {
        @Seconds package var every: Duration
        /// How long ago the newest was written that has come through; nil while none is expected.
        @Seconds package var silence: Duration?
        /// How long that one took.
        @Seconds package var latency: Duration?
        /// When the newest that has come through was written.
        @Nullable package var lastSuccessAt: WallTime?
        /// What has become of the latest.
        @Nullable package var latest: String?
        package var written: Int
        package var cameThrough: Int

        private enum CodingKeys: String, CodingKey {
            case lastSuccessAt, latest, written, cameThrough
            case every = "everySeconds"
            case silence = "silentSeconds"
            case latency = "latencySeconds"
        }
    }

    package struct Breaker: Codable, Sendable, Equatable {
        package var name: String
        package var cause: String
        @Seconds package var probeIn: Duration?
        package var remedy: String

        private enum CodingKeys: String, CodingKey {
            case name, cause, remedy
            case probeIn = "nextProbeSeconds"
        }
    }

    package struct Topic: Codable, Sendable {
        package var topic: String
        package var trouble: String
        package var remedy: String
    }

    package struct Restricted: Codable, Sendable, Equatable {
        package var what: String
        package var action: String
        @Nullable package var perSecond: Int?
        /// Of a rollout.
        @Nullable package var percent: Int?
        package var by: String
        @Nullable package var reason: String?
        package var at: WallTime
        @Nullable package var until: WallTime?
        /// The command that lifts it; nil for one of the configuration.
        @Nullable package var lift: String?
    }
}
