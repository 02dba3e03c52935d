// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a fleet is made of, and how its workers are configured.
struct FleetPlan: Sendable {
    /// `lamplighter` itself, of which every process is one.
    var program: String
    /// `lamplighter-check`.
    var checker: String
    /// Where everything is written.
    var directory: String
    /// Of each worker: auto, nghttp2 or curl.
    var transports: [String]
    /// `host:port` of a Kafka that is there already; nil for an embedded one.
    var kafka: String?
    /// Of the topics, and the name of the consumer group.
    var prefix = "lamplighter"
    /// `index.settle`, which the checker must know too.
    var settle = Duration.milliseconds(200)
    /// `delivery.holdMax`.
    var holdMax = Duration.seconds(10)
    /// `delivery.shutdownTimeout`.
    var shutdownTimeout = Duration.seconds(5)
    /// More options of the traffic generator.
    var traffic: [String] = []

    /// An event partition's 5 MiB are all that the embedded Kafka keeps of it; 16 of them hold a
    /// million events.
    private static let partitions = [
        ("events", 16), ("registrations", 16), ("verdicts", 4), ("deferred", 16),
        ("dead-letters", 4),
    ]

    /// Of the topics that the group shares among its members.
    static let sharedPartitions = partitions.reduce(0) { sum, topic in
        ["events", "deferred"].contains(topic.0) ? sum + topic.1 : sum
    }

    func topic(_ name: String) -> String { "\(prefix).\(name)" }

    /// As `lamplighter simulate kafka` takes them.
    var topics: String {
        Self.partitions.map { "\(topic($0.0)):\($0.1)" }.joined(separator: ",")
    }

    /// A dead worker is noticed after this.
    ///
    /// The embedded Kafka makes a group wait for a session less 1 s at each join, but 3 s at the
    /// first, and forgets members that wait for longer than their session. Apache Kafka allows no
    /// less than 6 s.
    static func session(isKafkaOurs: Bool) -> Duration {
        isKafkaOurs ? .milliseconds(3500) : .seconds(6)
    }

    var session: Duration { Self.session(isKafkaOurs: kafka == nil) }
}

extension FleetPlan {
    static let app = Neighbourhood.app
    static let team = "ABCDE12345"
    static let keyID = "FGHIJ67890"

    /// `lamplighter.yaml`, in a folder with `AuthKey.p8` and `ca.pem`.
    func configuration(bootstrap: String, apns: SimulatorAddresses) -> String {
        """
        kafka:
          bootstrap: \(bootstrap)
          group: \(prefix)
          startFrom: earliest
          topics:
            registrations: \(topic("registrations"))
            verdicts: \(topic("verdicts"))
            deferred: \(topic("deferred"))
            deadLetters: \(topic("dead-letters"))
          events:
            \(topic("events")): {decode: json}
          properties:
            session.timeout.ms: \(session.wholeMilliseconds)
            heartbeat.interval.ms: 200
            # The embedded Kafka holds an empty fetch for all of this time.
            fetch.wait.max.ms: 5
            # A broker that was away is found again at once.
            reconnect.backoff.max.ms: 500
        index:
          settle: \(settle.wholeMilliseconds)ms
        delivery:
          backoffMin: 100ms
          cooldownMin: 1s
          holdMax: \(holdMax.wholeMilliseconds)ms
          shutdownTimeout: \(shutdownTimeout.wholeMilliseconds)ms
        apns:
          caFile: ca.pem
          reconnectMin: 10ms
          # What a stall swallows is sent again after this time.
          requestTimeout: 3s
          credentials:
            home:
              team: \(Self.team)
              keyID: \(Self.keyID)
              keyFile: AuthKey.p8
              apps: [\(Self.app)]
              environments: [production]
          endpoints:
            production: {host: \(apns.host), port: \(apns.port), serverName: localhost}
        log:
          format: text

        """
    }
}

extension Duration {
    /// Rounded down.
    var wholeMilliseconds: Int { Int(self / .milliseconds(1)) }
}
