// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import Testing

/// What a fleet is made of, and the configuration of its workers.
struct TestPlan: Sendable {
    var workers = 1
    var transport = "nghttp2"
    /// How many whole requests the simulator keeps.
    var recordRequests = 10_000
    /// The delay of the simulator's answers, so that pushes are in flight when something happens.
    var answerDelay: Duration = .zero
    /// `index.registrationGrace`: an event's offset is held at least so long.
    var registrationGrace = Duration.seconds(2)
    /// `delivery.holdMax`: a push that waits longer goes to the deferred topic.
    var holdMax = Duration.seconds(10)
    /// `planning.splitAbove`: an event of more tokens is sent by all workers together.
    var splitAbove = 100_000
    /// `planning.fanOutMax`: an event of more tokens is withheld; nil withholds none.
    var fanOutMax: Int?
    /// `planning.minimumGap.controls`.
    var controlGap = Duration.zero
    /// `delivery.queuedMax`: how many pushes a worker holds; nil for the default.
    var queuedMax: Int?
    /// `delivery.shutdownTimeout`, for a stop that a slow machine may take long for; nil for the default.
    var shutdownTimeout: Duration?
    /// `delivery.deferredMax`: how many deferred pushes a worker keeps in memory; nil for the default.
    var deferredMax: Int?
    /// How many requests APNs is sent at a time, all on one connection; nil for the defaults.
    var streamsMax: Int?
    /// `deadLetters.repeatAfter`: zero writes a letter for each failure.
    var repeatAfter = Duration.zero
    /// Whether each worker writes a canary each 10 s, the shortest period.
    var writesCanaries = false
    /// Whether workers write an outcome for each push.
    var writesOutcomes = false
    /// `queue.buffering.max.messages` of the workers' producers.
    var producerRecordsMax = 100_000

    /// A push type of `apns.pushTypes`, which the simulator knows, too.
    var addedPushType: SimulatorPushType?
    /// The URL of a schema registry; then the records of `orders` are Avro.
    var schemaRegistry: String?
    /// The bindings of some topics, in YAML, in place of the usual ones.
    var bindings: [FleetTopics.Written: String] = [:]
    /// `intake.allowKindWide`: events without a subject reach whole kinds and apps.
    var allowsKindWide = false
    /// `intake.allowInstallations`: events may name an installation instead of a subject.
    var allowsInstallations = false
    /// The broadcast channels that there are at the start.
    var channels: [SimulatorChannel] = []
    /// Whether workers say all they can, in both formats, and have secrets of every kind.
    var saysAll = false

    /// For thousands of pushes; answers take so long that some are in flight at any moment.
    static func underTraffic(workers: Int) -> TestPlan {
        TestPlan(workers: workers, recordRequests: 0, answerDelay: .milliseconds(5))
    }

    /// The processes of the fleet, in a folder that the key files are written into.
    func fleetPlan() throws -> FleetPlan {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)")
        var configuration = WorkerConfiguration(
            .ofTest(),
            session: WorkerConfiguration.session(isKafkaEmbedded: Fleet.testBootstrap == nil))
        configuration.events = [
            ("events", "{app: \(TestApp.home), decode: json}"),
            ("orders", "{app: \(TestApp.home), decode: json, subject: \"order-{/orderId}\"}"),
            ("cloudEvents", "{app: \(TestApp.home), decode: cloudevents}"),
        ].map { (configuration.topics.name(of: $0.0), $0.1) }
        for (topic, binding) in bindings {
            let name = configuration.topics[topic]
            let place = configuration.events.firstIndex { $0.topic == name }!
            configuration.events[place].binding = binding
        }
        if writesCanaries {
            configuration.canary = [("every", "10s"), ("app", TestApp.home)]
        }
        if allowsKindWide { configuration.intake.append(("allowKindWide", "true")) }
        if allowsInstallations { configuration.intake.append(("allowInstallations", "true")) }
        if let schemaRegistry {
            configuration.kafka = [("schemaRegistry", "{urls: [\"\(schemaRegistry)\"]}")]
            configuration.events[1].binding =
                "{app: \(TestApp.home), valueSchema: avro, subject: \"order-{/orderId}\"}"
        }
        configuration.properties["queue.buffering.max.messages"] = "\(producerRecordsMax)"
        if writesOutcomes { configuration.outcomes = configuration.topics.outcomes }
        configuration.registrationGrace = registrationGrace
        configuration.holdMax = holdMax
        configuration.delivery = [("guard", "{window: 10, badShareMax: 0.2}")]
        if writesOutcomes { configuration.delivery.append(("outcomeSample", "1")) }
        if let queuedMax { configuration.delivery.append(("queuedMax", "\(queuedMax)")) }
        if let shutdownTimeout {
            let seconds = shutdownTimeout.components.seconds
            configuration.delivery.append(("shutdownTimeout", "\(seconds)s"))
        }
        if let deferredMax { configuration.delivery.append(("deferredMax", "\(deferredMax)")) }
        if let streamsMax {
            configuration.apns += [
                ("connections", "1"), ("connectionsMax", "1"), ("streamsMax", "\(streamsMax)"),
            ]
        }
        configuration.planning = [("splitAbove", "\(splitAbove)")]
        if controlGap > .zero {
            let seconds = controlGap.components.seconds
            configuration.minimumGap = "{controls: \(seconds)s, background: 0s}"
        }
        if let fanOutMax { configuration.planning.append(("fanOutMax", "\(fanOutMax)")) }
        configuration.repeatAfter = repeatAfter
        configuration.transport = transport
        if let type = addedPushType {
            configuration.apns += [
                (
                    "pushTypes",
                    "{\(type.name): {class: \(type.name), topicSuffix: \(type.topicSuffix)}}"
                )
            ]
        }
        configuration.caFile = directory.appending(path: "ca.pem").path
        configuration.credentials = [("home", SigningTeam.home), ("other", SigningTeam.other)].map {
            let keyFile = directory.appending(path: "\($0.1.keyID).p8").path
            return .init(
                name: $0.0, team: $0.1.teamID, keyID: $0.1.keyID, keyFile: keyFile,
                apps: $0.1.apps)
        }
        var plan = FleetPlan(
            programs: try Fleet.programs, directory: directory.path, kafka: Fleet.testBootstrap,
            configuration: configuration)
        if saysAll { plan.sayAll() }
        return plan
    }

    /// Writes the key files that the configuration names.
    func writeKeys(into directory: URL) throws {
        for team in [SigningTeam.home, SigningTeam.other] {
            try team.privatePEM.write(
                to: directory.appending(path: "\(team.keyID).p8"), atomically: true,
                encoding: .utf8)
        }
    }
}

/// One fleet for all tests of a suite: a group's first join takes seconds.
struct SharedFleet: SuiteTrait, TestScoping {
    let plan: TestPlan

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
    static func fleet(_ plan: TestPlan = TestPlan()) -> Self { SharedFleet(plan: plan) }
}
