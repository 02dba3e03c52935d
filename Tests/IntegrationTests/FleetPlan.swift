// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Foundation
import PushModel
import Testing

/// What a fleet is made of, and the configuration of its workers.
struct FleetPlan: Sendable {
    var workers = 1
    var transport = "nghttp2"
    /// How many whole requests the simulator keeps.
    var recordRequests = 10_000
    /// So that pushes are in flight when something happens.
    var answerDelay: Duration = .zero
    /// `index.settle`: an event's offset is held at least so long.
    var settle = "2s"
    /// `delivery.holdMax`: a push that waits longer goes to the deferred topic.
    var holdMax = "10s"
    /// `planning.splitAbove`: an event of more tokens is sent by all workers together.
    var splitAbove = 100_000
    /// `queue.buffering.max.messages` of the workers' producers.
    var producerRecordsMax = 100_000

    /// For thousands of pushes; answers take so long that some are in flight at any moment.
    static func underTraffic(workers: Int) -> FleetPlan {
        FleetPlan(workers: workers, recordRequests: 0, answerDelay: .milliseconds(5))
    }

    /// A dead member is noticed after this. Apache Kafka allows no less than 6 s; the embedded one
    /// makes every join but the first wait for it, less a second.
    private var sessionMilliseconds: Int { Fleet.testBootstrap == nil ? 3000 : 6000 }

    /// Writes the configuration and the key files that it names.
    func configuration(
        in directory: URL, bootstrap: String, topics: FleetTopics, simulator: APNSSimulator
    ) throws -> URL {
        for team in [SigningTeam.home, SigningTeam.other] {
            try team.privatePEM.write(
                to: directory.appending(path: "\(team.keyID).p8"), atomically: true,
                encoding: .utf8)
        }
        let text = """
            kafka:
              bootstrap: \(bootstrap)
              group: \(topics.prefix)
              startFrom: earliest
              topics:
                registrations: \(topics[.registrations])
                verdicts: \(topics[.verdicts])
                deferred: \(topics.deferred)
                deadLetters: \(topics.deadLetters)
              events:
                \(topics[.events]): {app: \(TestApp.home), decode: json}
                \(topics[.orders]):
                  {app: \(TestApp.home), decode: json, subject: "order-{/orderId}"}
                \(topics[.cloudEvents]): {app: \(TestApp.home), decode: cloudevents}
              properties:
                session.timeout.ms: \(sessionMilliseconds)
                heartbeat.interval.ms: 300
                fetch.wait.max.ms: 20
                queue.buffering.max.messages: \(producerRecordsMax)
            index:
              settle: \(settle)
            delivery:
              backoffMin: 100ms
              cooldownMin: 1s
              holdMax: \(holdMax)
              guard: {window: 10, badShareMax: 0.2}
            planning:
              splitAbove: \(splitAbove)
            apns:
              transport: \(transport)
              caFile: \(directory.appending(path: "ca.pem").path)
              reconnectMin: 10ms
              credentials:
            \(credential("home", .home, directory))
            \(credential("other", .other, directory))
              endpoints:
            \(endpoint(.production, simulator))
            \(endpoint(.development, simulator))
            log:
              format: text
            """
        let file = directory.appending(path: "lamplighter.yaml")
        try (text + "\n").write(to: file, atomically: true, encoding: .utf8)
        return file
    }

    private func credential(_ name: String, _ team: SigningTeam, _ directory: URL) -> String {
        """
            \(name):
              team: \(team.teamID)
              keyID: \(team.keyID)
              keyFile: \(directory.appending(path: "\(team.keyID).p8").path)
              apps: [\(team.apps.joined(separator: ", "))]
              environments: [production, development]
        """
    }

    private func endpoint(_ environment: PushEnvironment, _ simulator: APNSSimulator) -> String {
        let port = simulator.port(of: environment) ?? 0
        return "    \(environment.name): {host: 127.0.0.1, port: \(port), serverName: localhost}"
    }
}

/// One fleet for all tests of a suite: a group's first join takes seconds.
struct SharedFleet: SuiteTrait, TestScoping {
    let plan: FleetPlan

    func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        let fleet = try await Fleet(plan)
        defer { fleet.end() }
        try await Fleet.$current.withValue(fleet) { try await function() }
    }
}

extension Trait where Self == SharedFleet {
    static func fleet(_ plan: FleetPlan = FleetPlan()) -> Self { SharedFleet(plan: plan) }
}
