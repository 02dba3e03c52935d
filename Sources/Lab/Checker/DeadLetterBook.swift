// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// The dead letters, by the event that they name and by token.
struct DeadLetterBook {
    /// A push to one token that failed for good.
    struct Failure {
        /// The oldest event that the push answered for.
        var event: Coordinates
        /// The status of the last answer; nil if the push used up its attempts.
        var status: UInt16?
        var reason: UInt64
        /// When the push failed for good, in milliseconds since 1970, rounded down.
        var lastAt: Int64

        /// Whether the push used up its attempts, all of which may have gone unanswered: the only
        /// failure that the simulator's log need not show.
        var mayBeUnanswered: Bool { status == nil && reason == Self.attemptsExhausted }

        private static let attemptsExhausted = LoggedAnswer.short("AttemptsExhausted")
    }

    private var failures: [UInt32: [Failure]] = [:]
    private var unreadableEvents: Set<Coordinates> = []
    private(set) var unreadable = 0
    private(set) var count = 0

    /// Adds a letter, which is the record's value.
    mutating func add(_ record: LoggedRecord, tokens: TokenBook) {
        count += 1
        guard let letter = record.members, let source = letter.object("source"),
            let event = try? source.coordinates(), let lastAt = letter.instant("lastAt"),
            let named = letter.objects("tokens"), let reason = letter.text("reason")
        else {
            unreadable += 1
            return
        }
        let status = letter.integer("status").flatMap { UInt16(exactly: $0) }
        // A letter with attempts but no tokens lost them because it was too large for Kafka. It
        // proves nothing, because it does not name the tokens.
        if named.isEmpty, status == nil, letter.integer("attempts") == 0 {
            unreadableEvents.insert(event)
        }
        for target in named {
            guard let environment = target.text("environment").flatMap(Environment.word),
                let topic = target.text("apnsTopic"), let text = target.text("token"),
                let token = tokens.number(
                    Fingerprint(environment: environment, topic: topic, token: text))
            else { continue }
            failures[token, default: []].append(
                Failure(
                    event: event, status: status, reason: LoggedAnswer.short(reason),
                    lastAt: lastAt))
        }
    }

    /// Whether a letter reports that the event could not be read.
    func isUnreadable(_ event: Coordinates) -> Bool { unreadableEvents.contains(event) }

    func failures(of token: UInt32) -> [Failure] { failures[token] ?? [] }
}
