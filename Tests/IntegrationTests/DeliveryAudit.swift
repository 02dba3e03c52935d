// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import PushModel

/// A line of the producer's log: an event that Kafka has acknowledged.
struct EventLine: Codable, Sendable {
    /// Nanoseconds since 1970, before it was handed to Kafka: no worker can have read it earlier.
    var t: Int64
    var topic: String
    var partition: Int32
    var offset: Int64
    var app: String
    var subject: String
}

/// A line of the simulator's log: an answer.
struct AnswerLine: Codable, Sendable {
    var t: Int64
    var conn: Int
    var env: String
    var topic: String
    var token: String
    var apnsID: String
    var status: Int
    var reason: String

    static func read(_ file: URL) throws -> [AnswerLine] {
        let decoder = JSONDecoder()
        // What follows the last line end is still being written.
        return try Data(contentsOf: file).split(separator: 0x0A, omittingEmptySubsequences: false)
            .dropLast().map { try decoder.decode(AnswerLine.self, from: $0) }
    }
}

/// "Nothing is lost", judged from outside: every owed (event, token) has an accepted push that was
/// sent after the event.
struct DeliveryAudit {
    struct Pair: Hashable {
        var subject: String
        var offset: Int64
        var partition: Int32
        var token: String
    }

    private(set) var owed = 0
    private(set) var lost: [Pair] = []
    /// Accepted pushes with an `apns-id` that was accepted before.
    private(set) var duplicates = 0
    private(set) var accepted = 0

    /// - Parameter tokens: in hexadecimal, of each subject.
    init(events: [EventLine], answers: [AnswerLine], tokens: [String: [String]]) {
        var lastAccepted: [String: Int64] = [:]
        var identities: Set<String> = []
        for answer in answers where answer.status == 200 {
            accepted += 1
            lastAccepted[answer.token] = max(lastAccepted[answer.token] ?? 0, answer.t)
            if !identities.insert(answer.apnsID).inserted { duplicates += 1 }
        }
        for event in events {
            for token in tokens[event.subject] ?? [] {
                owed += 1
                if lastAccepted[token] ?? 0 > event.t { continue }
                lost.append(
                    Pair(
                        subject: event.subject, offset: event.offset, partition: event.partition,
                        token: token))
            }
        }
    }
}
