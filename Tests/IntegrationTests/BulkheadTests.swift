// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import LinuxIO
import Testing

/// Two teams whose events come in the same partitions, and a key of one of them that APNs refuses.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            recordRequests: 10, answerDelay: .milliseconds(2),
            registrationGrace: .milliseconds(200),
            holdMax: .seconds(2))))
struct `The bulkhead around a team whose key has expired` {
    /// Events of each team a second; a push is answered before its subject changes again. Fewer where
    /// it takes long: the embedded Kafka looks through all of its log at each fetch, so that it grows
    /// slow by itself with some ten thousand records.
    private static let rate = fault > 60 ? 30 : 150
    private static let subjects = 300
    /// Long enough for deferral and back-off to reach their steady state; `BULKHEAD_SECONDS=600`
    /// for more.
    private static let quiet = fault > 60 ? 15.0 : 7.0
    private static let fault =
        ProcessInfo.processInfo.environment["BULKHEAD_SECONDS"].flatMap(Double.init) ?? 12

    private struct Team {
        let app: String
        let tokens: [TestToken]
    }

    /// By the beginning of its tokens the simulator tells whose key has expired.
    private let healthy = Team(app: TestApp.home, tokens: tokens("aa"))
    private let ill = Team(app: TestApp.other, tokens: tokens("ee"))

    private static func tokens(_ prefix: String) -> [TestToken] {
        (0..<subjects).map { _ in TestToken(prefix + TestToken().hex.dropFirst(2)) }
    }

    @Test func `a team with an expired key keeps no other waiting, and no partition uncommitted`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        for team in [healthy, ill] {
            try fleet.register(
                team.tokens.enumerated().map { number, token in
                    .controls([token], show: ["subject-\(number)"], app: team.app)
                })
        }
        try await fleet.registrationsApplied()
        // The first seconds are those of a program that is just starting.
        _ = try await traffic(fleet, seconds: 3)
        // What the machine does meanwhile makes a difference, and not three times in a row; a team
        // that is held up is so each time.
        var isApart = false
        for _ in 0..<3 where !isApart {
            isApart = try await compare(fleet)
            fleet.simulator.perform(.rules([]))
            // The other team's pushes are no longer held back when it is measured again.
            if !isApart { _ = try await traffic(fleet, seconds: 8) }
        }
        #expect(isApart, "the healthy team waits while the other's key is refused")
    }

    /// Times the healthy team's pushes without and with the fault.
    /// - Returns: whether they are as fast with it, and the partitions are committed as far.
    private func compare(_ fleet: Fleet) async throws -> Bool {
        let quiet = try await traffic(fleet, seconds: Self.quiet)
        fleet.simulator.perform(
            .rules([
                ScriptedRule(tokenPrefix: "ee", answer: .reason(403, "ExpiredProviderToken"))
            ]))
        let fault = try await traffic(fleet, seconds: Self.fault)
        // What is late must be seen to be late.
        let last = try #require(fault.events.last)
        try await fleet.eventually("the last push") {
            try fleet.answers().contains {
                $0.status == 200 && $0.t > last.t && $0.token == healthy.tokens[last.subject].hex
            }
        }
        let answers = try fleet.answers()
        #expect(answers.contains { $0.status == 403 })
        let before = try quiet.percentiles(answers, healthy.tokens)
        let during = try fault.percentiles(answers, healthy.tokens)
        // The seconds of the quiet time differ by so much themselves; where it is not measured for
        // long, a busy machine makes a difference, and to be held up would cost far more.
        let noise = before.upperQuartile - before.median + (Self.fault < 60 ? 40 : 0)
        print(
            "p99 event to accepted, median of seconds: \(before.median) ms quiet (upper quartile "
                + "\(before.upperQuartile)), \(during.median) ms with the other team's key expired "
                + "for \(Self.fault) s; most events not committed \(fault.lagMax)")
        // The events of both teams in: holdMax; registrationGrace; the fifth of holdMax for which
        // delivery keeps a push while its pool has no connection; and three seconds for commits and
        // Kafka's acknowledgements.
        let lagMax = Double(2 * Self.rate) * (2 + 0.2 + 0.4 + 3)
        return during.median <= before.median * 1.2 + noise && Double(fault.lagMax) <= lagMax
    }

    // MARK: Traffic

    private struct Recording {
        /// By subject: when its events were handed to Kafka, of the healthy team, in nanoseconds
        /// since 1970.
        var events: [(t: Int64, subject: Int)] = []
        /// The most events that were written and not committed.
        var lagMax = 0

        /// In milliseconds, of the 99th percentiles of each second: one hiccup of the machine is
        /// one second's.
        func percentiles(
            _ answers: [LoggedOutcome], _ tokens: [TestToken]
        ) throws -> (median: Double, upperQuartile: Double) {
            var accepted: [String: [Int64]] = [:]
            for answer in answers where answer.status == 200 {
                accepted[answer.token, default: []].append(answer.t)
            }
            let start = try #require(events.first?.t)
            var windows: [Int: [Double]] = [:]
            for event in events {
                let answered = accepted[tokens[event.subject].hex]?.first { $0 > event.t }
                let t = try #require(
                    answered, "no push for subject \(event.subject), \(event.t - start) ns")
                let second = Int((event.t - start) / 1_000_000_000)
                windows[second, default: []].append(Double(t - event.t) / 1e6)
            }
            let worst = windows.values.map { latencies in
                latencies.sorted()[(latencies.count * 99 + 99) / 100 - 1]
            }.sorted()
            return (worst[worst.count / 2], worst[worst.count * 3 / 4])
        }
    }

    /// Writes events of both teams at a steady rate, whatever becomes of them.
    private func traffic(_ fleet: Fleet, seconds: Double) async throws -> Recording {
        var recording = Recording()
        let positions = try fleet.positions()
        let start = ContinuousClock.now
        var nextLook = start + .seconds(1)
        for number in 0..<Int(seconds * Double(Self.rate)) {
            let due = start + .seconds(1) * number / Self.rate
            try await Task.sleep(until: due, clock: .continuous)
            let subject = number % Self.subjects
            recording.events.append((SystemClock.wallNanoseconds(), subject))
            try fleet.write([record(healthy, subject), record(ill, subject)])
            guard ContinuousClock.now >= nextLook else { continue }
            nextLook = .now + .seconds(1)
            recording.lagMax = max(
                recording.lagMax, Int(try fleet.lags(positions).reduce(0, +)))
        }
        return recording
    }

    private func record(_ team: Team, _ subject: Int) -> WrittenRecord {
        let name = "subject-\(subject)"
        return WrittenRecord(
            topic: .events, key: name,
            value: #"{"v":1,"subject":"\#(name)","app":"\#(team.app)"}"#,
            partition: Int32(subject) % FleetTopics.partitionsEach)
    }
}
