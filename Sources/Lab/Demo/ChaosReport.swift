// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Checker
internal import Foundation

/// The totals of all rounds, printed as one line of JSON.
package struct ChaosReport: Codable, Equatable, Sendable {
    package var rounds = 0
    package var seed: UInt64
    package var kills = 0
    package var terminations = 0
    /// How often a worker was frozen, for longer or for shorter than its session.
    package var freezes = 0
    package var faults = 0
    package var events = 0
    package var obligations = 0
    package var lost = 0
    /// Obligations whose events the embedded Kafka dropped, as it keeps only 5 MiB of a partition.
    /// Nothing is proved about them.
    package var truncated = 0
    package var expired = 0
    package var suppressed = 0
    package var deadLettered = 0
    package var withdrawn = 0
    package var ambiguous = 0
    /// How many records were written to the deferred topic.
    package var deferredRecords = 0
    package var duplicates = 0
    package var duplicatesMax = 0
    /// How many workers ended with an error by themselves, and were replaced.
    package var exits = 0
    /// What went wrong, one sentence each.
    package var failures: [String] = []

    package init(seed: UInt64) { self.seed = seed }

    package var isGood: Bool { lost == 0 && truncated == 0 && failures.isEmpty }

    mutating func add(_ result: CheckReport) {
        events += result.events
        obligations += result.obligations
        lost += result.lost
        truncated += result.truncated
        expired += result.expired
        suppressed += result.suppressed
        deadLettered += result.deadLettered
        withdrawn += result.withdrawn
        ambiguous += result.ambiguous
        duplicates += result.duplicates
    }

    mutating func add(_ round: ChaosReport) {
        rounds += round.rounds
        kills += round.kills
        terminations += round.terminations
        freezes += round.freezes
        faults += round.faults
        events += round.events
        obligations += round.obligations
        lost += round.lost
        truncated += round.truncated
        expired += round.expired
        suppressed += round.suppressed
        deadLettered += round.deadLettered
        withdrawn += round.withdrawn
        ambiguous += round.ambiguous
        deferredRecords += round.deferredRecords
        duplicates += round.duplicates
        duplicatesMax += round.duplicatesMax
        exits += round.exits
        failures += round.failures
    }

    /// The totals in one line for people.
    package var summary: String {
        "\(obligations.grouped) obligations · \(kills) kills · \(lost) lost · "
            + "\(duplicates.grouped) duplicates (at most \(duplicatesMax.grouped)) · "
            + "\(deferredRecords.grouped) deferred records · \(expired) expired · "
            + "\(deadLettered) dead-lettered · \(suppressed) suppressed · "
            + "\(withdrawn) withdrawn · \(ambiguous) ambiguous"
    }

    package var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// How many pushes a round may send twice.
///
/// A worker that takes partitions over reads again what was not committed: the events of at most
/// `holdMax` and `registrationGrace`, and of the time in which nothing can be committed, since the
/// embedded Kafka makes a group wait for almost a session at each join. If answers are lost, the
/// requests in flight are sent again.
struct DuplicateBound {
    var script: ChaosScript
    var registrationGrace: Duration
    var session: Duration
    /// How long the round has traffic.
    var duration: Duration
    var obligations: Int
    /// How many partitions the workers have logged as unassigned. On a machine too busy for their
    /// heartbeats the group moves partitions without a fault.
    var givenUp = 0
    var sharedPartitions: Int

    /// The most requests in flight: `apns.streamsMax` of each worker.
    private static let openMax = ChaosScript.workers * 1000

    var pushes: Int {
        let again = script.holdMax + registrationGrace + session
        let unasked = Double(givenUp) / Double(sharedPartitions)
        let takeovers = max(Double(script.takeovers), unasked)
        let reread = takeovers * (again / duration) * Double(obligations)
        return Int(reread) + script.answerLosses * Self.openMax
    }
}
