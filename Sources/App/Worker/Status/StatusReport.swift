// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What `/status` answers: the state of one worker, as JSON. docs/status.md describes each member,
/// and whoever adds one describes it there.
package struct StatusReport: Codable, Sendable, Equatable {
    /// The version of the format. A report of another one cannot be read.
    package enum Version: Int, Codable, Sendable {
        case first = 1
    }

    package var v = Version.first
    package var at: String
    package var worker: Worker
    package var phase: String
    package var summary: String
    package var problems: [Problem]
    package var index: Index
    package var partitions: [Partition]
    package var unavailablePartitions: Int
    /// Nil in the report of a worker from before it was told.
    package var membership: Membership?
    package var rates: Rates
    package var totals: [String: Int]
    package var latency: Latency
    package var waiting: Waiting
    package var pools: [Pool]
    package var breakers: [Breaker]
    package var topics: [Topic]
    package var unmatched: [Unmatched]
    /// Nil in the report of a worker from before they were told from those that match.
    package var passedOver: [Unmatched]?
    package var setAside: [SetAside]
    /// Nil in the report of a worker from before they were counted.
    package var misplaced: [Misplaced]?
    package var pushes: [Push]
    /// Nil in the report of a worker from before there were restrictions.
    package var restrictions: [Restricted]?
    /// Nil in the report of a worker from before there were budgets.
    package var budgets: [Budget]?
    package var subjectsOverBudget: [SubjectOverBudget]?
    /// Nil in the report of a worker from before it was followed.
    package var demand: Demand?
    /// Nil where no canaries are written.
    package var canary: Canary?
    /// Nil where pushes are sent.
    package var shadow: Shadow?

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

    package struct Worker: Codable, Sendable, Equatable {
        package var id: String
        package var group: String
        package var version: String
        package var commit: String
        package var startedAt: String
        package var residentBytes: Int
    }

    package struct Index: Codable, Sendable, Equatable {
        @Nullable package var share: Double?
        package var recordsRead: UInt64
        @Nullable package var secondsLeft: Double?
        package var tokens: Int
        /// Nil in the report of a worker from before they were counted apart.
        package var tokensOf: [TokenCount]?
        package var subjects: Int
        package var subscriptions: Int
        package var registrations: Int
        package var bytes: Int
        @Nullable package var snapshotSeconds: Double?
        package var topics: [Table]
    }

    package struct TokenCount: Codable, Sendable, Equatable {
        package var app: String
        package var environment: String
        package var `class`: String
        package var tokens: Int
    }

    package struct Table: Codable, Sendable, Equatable {
        package var topic: String
        package var partitions: Int
        package var unread: Int64
        package var ageSeconds: Double
    }

    package struct Partition: Codable, Sendable, Equatable {
        package var topic: String
        package var partition: Int32
        @Nullable package var lag: Int64?
    }

    package struct Rates: Codable, Sendable, Equatable {
        package var eventsPerSecond: Double
        package var acceptedPerSecond: Double
        package var overSeconds: Double
    }

    package struct Latency: Codable, Sendable, Equatable {
        package var eventToAccepted: [TypeLatency]
        package var roundTrip: RoundTrip
    }

    package struct TypeLatency: Codable, Sendable, Equatable {
        package var type: String
        package var count: UInt64
        @Nullable package var p50Seconds: Double?
        @Nullable package var p99Seconds: Double?
    }

    package struct RoundTrip: Codable, Sendable, Equatable {
        package var count: UInt64
        @Nullable package var p50Seconds: Double?
        @Nullable package var p99Seconds: Double?
    }

    package struct Waiting: Codable, Sendable, Equatable {
        package var queued: Int
        package var inFlight: Int
        package var resting: Int
        package var deferred: Int
        package var held: Int
        package var unacknowledged: Int
        package var payloadBytes: Int
        @Nullable package var oldestWaitingSeconds: Double?
        @Nullable package var oldestWaitingTopic: String?
        @Nullable package var oldestWaitingSubject: String?
        @Nullable package var oldestUncommittedSeconds: Double?
    }

    package struct Pool: Codable, Sendable, Equatable {
        package var credential: String
        package var environment: String
        /// `broadcasts` of the pool that sends to channels; nil of one that sends to devices.
        @Nullable package var service: String?
        package var endpoint: String
        package var state: String
        @Nullable package var connectError: String?
        package var connections: Int
        package var streams: Int
        package var streamsMax: Int
        @Nullable package var providerTokenAgeSeconds: Double?
        @Nullable package var silentSeconds: Double?
        @Nullable package var nextProbeSeconds: Double?
    }

    package struct Canary: Codable, Sendable, Equatable {
        package var everySeconds: Double
        /// How long ago the newest was written that has come through; nil while none is expected.
        @Nullable package var silentSeconds: Double?
        /// How long that one took.
        @Nullable package var latencySeconds: Double?
        /// When the newest that has come through was written.
        @Nullable package var lastSuccessAt: String?
        /// What has become of the latest.
        @Nullable package var latest: String?
        package var written: Int
        package var cameThrough: Int
    }

    package struct Breaker: Codable, Sendable, Equatable {
        package var name: String
        package var cause: String
        @Nullable package var nextProbeSeconds: Double?
        package var remedy: String
    }

    package struct Topic: Codable, Sendable, Equatable {
        package var topic: String
        package var trouble: String
        package var remedy: String
    }

    package struct Unmatched: Codable, Sendable, Equatable {
        package var topic: String
        package var count: Int
        package var sample: [Sighting]
    }

    /// Records that are in other partitions than those of their keys, with the last of them.
    package struct Misplaced: Codable, Sendable, Equatable {
        package var topic: String
        package var count: Int
        package var partition: Int32
        package var offset: Int64
        package var belongsIn: Int32
    }

    package struct Sighting: Codable, Sendable, Equatable {
        package var subject: String
        package var at: String
    }

    /// What the pushes of one type have come to today.
    package struct Budget: Codable, Sendable, Equatable {
        package var type: String
        package var perDay: Int
        package var tokensOver: Int
        package var pushesOver: Int
    }

    package struct SubjectOverBudget: Codable, Sendable, Equatable {
        package var app: String
        package var subject: String
        package var pushes: Int
    }

    /// Who has asked for most pushes in the last minute or two.
    package struct Demand: Codable, Sendable, Equatable {
        package struct Subject: Codable, Sendable, Equatable {
            package var app: String
            /// `subject`, or `kind` for events of a whole kind.
            package var unit: String
            package var name: String
            package var topic: String
            package var pushes: Int
            package var audience: Int
        }

        package struct Part: Codable, Sendable, Equatable {
            package var name: String
            package var pushes: Int
        }

        package var overSeconds: Double
        package var pushes: Int
        package var subjects: [Subject]
        package var topics: [Part]
        package var apps: [Part]
    }

    package struct SetAside: Codable, Sendable, Equatable {
        package var topic: String
        package var unit: String
        package var reason: String
        package var count: Int
    }

    package struct Restricted: Codable, Sendable, Equatable {
        package var what: String
        package var action: String
        @Nullable package var perSecond: Int?
        /// Of a rollout.
        @Nullable package var percent: Int?
        package var by: String
        @Nullable package var reason: String?
        package var at: String
        @Nullable package var until: String?
        /// The command that lifts it; nil for one of the configuration.
        @Nullable package var lift: String?
    }

    package struct Push: Codable, Sendable, Equatable {
        package var app: String
        package var type: String
        package var outcome: String
        package var reason: String
        package var count: Int
    }
}

extension KeyedDecodingContainer {
    /// A worker from before there was the member leaves it out.
    func decode<Value>(
        _ type: Nullable<Value>.Type, forKey key: Key
    ) throws -> Nullable<Value> {
        try decodeIfPresent(type, forKey: key) ?? Nullable(wrappedValue: nil)
    }
}

/// A member that is always written: as `null` where there is no value.
@propertyWrapper
package struct Nullable<Value: Codable & Sendable & Equatable>: Codable, Sendable, Equatable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
