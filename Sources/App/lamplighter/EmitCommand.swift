// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import Intake
import Pipeline
import PushModel
import Worker

struct EmitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emit",
        abstract: "Writes one event: what is shown under this subject has changed.")

    @OptionGroup var options: ConfigurationOption

    @Argument(help: "The subject that has changed; also the record's key.")
    var subject: String

    @Option(help: "The events topic; by default the first one configured.")
    var topic: String?

    @Option(help: "The app, where several are configured.")
    var app: String?

    @Option(help: "production or development; by default all of the app's.")
    var environment: String?

    @Option(name: .customLong("kind"), help: "Only targets of this kind; may be repeated.")
    var kinds: [String] = []

    @Option(name: .customLong("ttl"), help: "Seconds for which the push is worth sending.")
    var ttlSeconds: Int64?

    @Option(help: "apns-priority: 10, 5 or 1.")
    var priority: UInt8?

    @Option(name: .customLong("collapse-id"), help: "At most 64 bytes.")
    var collapseID: String?

    @Option(help: "A JSON object with an aps dictionary, sent to device tokens.")
    var payload: String?

    func run() async throws {
        try await Failure.reporting {
            let configuration = try options.load()
            let topics = configuration.kafka.events.keys.sorted()
            let topic = self.topic ?? topics[0]
            let value = try event().map(EventEncoder.value)
            if let value { try check(value, configuration) }
            let writer = try RecordWriter(configuration, topics: [topic])
            try writer.write(key: Array(subject.utf8), value: value)
            print("emitted \(subject) to \(topic)")
        }
    }

    /// What a worker would call unreadable is not written.
    private func check(_ value: [UInt8], _ configuration: Configuration) throws {
        let plan = WorkerPlan(configuration)
        var decoder = try EventDecoder(
            bindings: [.standard], routing: plan.routing, settings: plan.pipeline.events)
        let now = RecordWriter.now().wall
        do {
            try value.withUnsafeBytes { bytes in
                let record = EventRecord(binding: 0, key: nil, value: bytes, timestamp: now)
                _ = try decoder.decode(record, now: now) { _ in nil }
            }
        } catch let problem as UnreadableRecord {
            throw ValidationError("no worker could read this event: \(problem.message)")
        }
    }

    /// Nil where the key says it all.
    private func event() throws -> EventDraft? {
        let isPlain =
            app == nil && environment == nil && kinds.isEmpty && ttlSeconds == nil
            && priority == nil && collapseID == nil && payload == nil
        if isPlain { return nil }
        var event = EventDraft()
        event.subject = subject
        event.app = app
        event.environment = try environment.map(Arguments.environment)
        event.kinds = kinds
        event.ttlSeconds = ttlSeconds
        event.priority = priority
        event.collapseID = collapseID
        event.payload = payload.map { Array($0.utf8) }
        return event
    }
}

/// Words on the command line.
enum Arguments {
    static func environment(_ word: String) throws -> PushEnvironment {
        guard let environment = PushEnvironment(name: word) else {
            throw ValidationError("'\(word)' is not an environment: production or development")
        }
        return environment
    }

    static func token(_ hexadecimal: String) throws -> [UInt8] {
        guard let token = Hexadecimal.decode(hexadecimal), token.count <= 512 else {
            throw ValidationError("a token is hexadecimal, of even length, at most 1024 digits")
        }
        return token
    }
}
