// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc

extension TopicRecord {
    func decoded<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data((value ?? "").utf8))
    }
}

/// A dead letter as the contract has it.
struct DeadLetterValue: Decodable {
    struct Source: Decodable, Hashable {
        var topic: String
        var partition: Int32
        var offset: Int64
    }

    struct Target: Decodable {
        var token: String
        var environment: String
        var apnsTopic: String
    }

    struct Original: Decodable {
        var key: String?
        var value: String?
    }

    var v: Int
    var reason: String
    var message: String?
    var status: Int?
    var attempts: Int
    var source: Source
    var app: String?
    var eventID: String?
    var traceparent: String?
    var subject: String?
    var tokens: [Target]
    var event: Original?
}

extension Fleet {
    var suppressionLog: TopicLog {
        get throws { try TopicLog(topic: topics[.suppressions], bootstrap: bootstrap) }
    }

    var deadLetterLog: TopicLog {
        get throws { try TopicLog(topic: topics.deadLetters, bootstrap: bootstrap) }
    }

    var outcomeLog: TopicLog {
        get throws { try TopicLog(topic: topics.outcomes, bootstrap: bootstrap) }
    }

    func log(of topic: FleetTopics.Written) throws -> TopicLog {
        try TopicLog(topic: topics[topic], bootstrap: bootstrap)
    }

    /// Writes a record with kcat, as a foreign program would.
    /// - Parameters:
    ///   - value: on one line; nil for null.
    ///   - headers: each `name=value`.
    func kcat(
        _ topic: FleetTopics.Written, key: String, value: String?, headers: [String] = [],
        partition: Int32? = nil
    ) async throws {
        var arguments = ["-P", "-b", bootstrap, "-t", topics[topic]]
        if let partition { arguments += ["-p", "\(partition)"] }
        for header in headers { arguments += ["-H", header] }
        // Between key and value something that occurs in neither; an empty value is null (-Z).
        arguments += ["-Z", "-K", "\t"]
        let result = try await run(
            arguments, program: "/usr/bin/kcat", input: "\(key)\t\(value ?? "")\n")
        guard result.status == 0 else { throw Timeout(description: "kcat: \(result.output)") }
    }

    /// Writes a command to the standard input of the embedded Kafka.
    func tellKafka(_ line: String) async throws {
        guard let broker else { throw Timeout(description: "no embedded Kafka obeys \(line)") }
        let before = broker.output.split(separator: "\n").count
        broker.say(line)
        try await waitUntil("the embedded Kafka to obey") {
            broker.output.split(separator: "\n").count > before
        }
        guard broker.output.split(separator: "\n").last == "ok" else {
            throw Timeout(description: broker.excerpt)
        }
    }

    func positions() throws -> TopicPositions {
        try TopicPositions(bootstrap: bootstrap, group: topics.prefix)
    }

    /// How many events of each partition are written but not committed.
    func lags(_ positions: TopicPositions) throws -> [Int64] {
        let topic = topics[.events]
        return try zip(positions.ends(of: topic), positions.committed(of: topic)).map(-)
    }

    /// Stops the last worker as an operator does, and starts another.
    func replaceWorker() async throws {
        guard let worker = workers.last else { return }
        worker.signal(SIGTERM)
        let status = try await worker.finish()
        guard status == 0 else { throw Timeout(description: "exit \(status): \(worker.excerpt)") }
        try startWorker()
    }

    /// Emits two changes of a subject, and waits for the witness's push after each. By then every
    /// push for the first one has been answered.
    func changeTwice(_ subject: String, witness: TestToken) async throws {
        for _ in 0..<2 { try await change(subject, heardBy: witness) }
    }
}
