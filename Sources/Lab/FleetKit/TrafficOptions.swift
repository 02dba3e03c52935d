// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import RecordFormats

/// The options of the traffic generator.
package struct TrafficOptions {
    package var bootstrap: String
    package var eventsTopic = "lamplighter.events"
    package var registrationsTopic = "lamplighter.registrations"
    /// The workers' consumer group, whose lag bounds the traffic.
    package var group = "lamplighter"
    package var installations = 3000
    /// Events a second.
    package var rate = 250.0
    /// The workers' `index.registrationGrace`: how long after the registrations the first event is
    /// produced.
    package var registrationGrace = Duration.seconds(2)
    /// How long there are events; nil for as long as standard input is open.
    package var duration: Duration?
    /// The path of the events log: NDJSON with a line for each acknowledged event.
    package var eventsLog: String
    package var seed: UInt64 = 1
    /// Registers with a registrar, and returns once all is acknowledged; nil to write to Kafka.
    package var register: (([RegistrationDraft]) throws -> Void)?
    /// Changes of registrations per second, from the first event on.
    package var churn = 0.0
    /// The share of unreadable events.
    package var unreadableShare = 0.0
    /// The share of events that expire after `shortLife`.
    package var shortLivedShare = 0.0

    /// The share of events about the street, which every control shows.
    package var streetShare = 0.0

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
    /// The number of acknowledged events.
    package var events = 0
    /// The number of events that Kafka refused or did not acknowledge, which cause no obligations.
    package var failed = 0
    /// The number of written events whose offsets the group has not committed; nil before the
    /// group's first answer.
    package var lag: Int?
    /// Whether the bound on the lag is holding events back.
    package var isHeldBack = false
    /// That Kafka acknowledges nothing, and why; nil while it does.
    package var trouble: String?

    package init(phase: Phase) { self.phase = phase }
}
