// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What the traffic generator produces, and where.
package struct TrafficOptions: Sendable {
    package var bootstrap: String
    package var eventsTopic = "lamplighter.events"
    package var registrationsTopic = "lamplighter.registrations"
    /// The workers' consumer group, whose lag bounds the traffic.
    package var group = "lamplighter"
    package var installations = 3000
    /// Events a second.
    package var rate = 250.0
    /// The workers' `index.registrationGrace`; so long after the registrations an event is owed for sure.
    package var registrationGrace = Duration.seconds(2)
    /// From the first event; nil for as long as standard input is open.
    package var duration: Duration?
    /// NDJSON, a line for each acknowledged event.
    package var eventsLog: String
    package var seed: UInt64 = 1
    /// Changes of registrations a second, from the first event on.
    package var churn = 0.0
    /// The share of events that nobody can read.
    package var unreadableShare = 0.0
    /// The share of events with a life of `shortLife`.
    package var shortLivedShare = 0.0

    package static let shortLife = Duration.seconds(4)

    package init(bootstrap: String, eventsLog: String) {
        self.bootstrap = bootstrap
        self.eventsLog = eventsLog
    }

    package static let rates = 1.0...50_000
    package static let installationCounts = 3...100_000
}

/// A line of the generator's standard output.
package struct TrafficReport: Codable, Hashable, Sendable {
    package enum Phase: String, Codable, Sendable {
        case registering, gracePeriod, running, ended
    }

    package var phase: Phase
    /// Acknowledged events.
    package var events = 0
    /// Events that Kafka refused, or did not confirm: nobody is owed anything for them.
    package var failed = 0
    /// Events that are written and of which the group has not committed the offset; nil before the
    /// group has answered once.
    package var lag: Int?
    /// The bound on the lag holds events back.
    package var isHeldBack = false

    package init(phase: Phase) { self.phase = phase }
}
