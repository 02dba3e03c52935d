// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Checker
import FleetKit
import Foundation
import LinuxIO
import PushModel
import RecordFormats
import Synchronization

/// Subjects that several tokens show each, and events about them in a steady stream.
final class Traffic: Sendable {
    let fleet: Fleet
    let subjects: [String]
    let tokens: [String: [String]]
    private let eventsLog: URL
    private let events: Mutex<FileHandle>
    /// The topic is this test's alone, so the next offset of a partition is known.
    private let nextOffset = Mutex<[Int64]>(
        Array(repeating: 0, count: Int(FleetTopics.partitionsEach)))

    init(_ fleet: Fleet, subjects count: Int, tokensEach: Int) throws {
        self.fleet = fleet
        eventsLog = fleet.directory.appending(path: "events.ndjson")
        try Data().write(to: eventsLog)
        events = Mutex(try FileHandle(forWritingTo: eventsLog))
        subjects = (0..<count).map { "subject-\($0)" }
        var tokens: [String: [String]] = [:]
        var registrations: [RegistrationDraft] = []
        for subject in subjects {
            let shown = (0..<tokensEach).map { _ in TestToken() }
            tokens[subject] = shown.map(\.hex)
            registrations.append(.controls(shown, show: [subject]))
        }
        try fleet.register(registrations)
        self.tokens = tokens
    }

    /// Waits until the group has joined and every partition is read, which one event in each shows.
    func begin() async throws {
        let before = fleet.simulator.counts.accepted
        try await emit(Int(FleetTopics.partitionsEach))
        let pushes = subjects.prefix(Int(FleetTopics.partitionsEach)).reduce(0) {
            $0 + tokens[$1]!.count
        }
        try await accepted(pushes - 1 + before)
    }

    /// Waits until the simulator has accepted more pushes than that.
    func accepted(_ count: Int) async throws {
        try await fleet.eventually("\(count) pushes") { fleet.simulator.counts.accepted > count }
    }

    /// Writes events about subjects in turn, `batch` at a time, each in the partition of its
    /// subject's number.
    func emit(_ count: Int, batch: Int = 50) async throws {
        for start in stride(from: 0, to: count, by: batch) {
            try emit(start..<min(start + batch, count))
            // This is slightly slower than a worker reads, so that the stream lasts.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func emit(_ numbers: Range<Int>) throws {
        let t = SystemClock.wallNanoseconds()
        var records: [WrittenRecord] = []
        var lines = ""
        for number in numbers {
            let index = number % subjects.count
            let partition = Int32(index) % FleetTopics.partitionsEach
            let offset = nextOffset.withLock { next in
                defer { next[Int(partition)] += 1 }
                return next[Int(partition)]
            }
            records.append(
                WrittenRecord(
                    topic: .events, key: subjects[index], value: nil, partition: partition))
            lines += EventLine.text(
                t: t, topic: fleet.topics[.events], partition: partition, offset: offset,
                app: TestApp.home, subject: subjects[index])
        }
        try fleet.write(records)
        // Only events that Kafka has acknowledged are logged.
        try events.withLock { try $0.write(contentsOf: Data(lines.utf8)) }
    }

    /// The checker's report on what has happened so far. No expiry, dead letter or suppression ends
    /// a pair whose push has not arrived.
    func suppression() throws -> CheckReport {
        var settings = CheckSettings(
            events: eventsLog.path,
            answers: fleet.directory.appending(path: "answers.ndjson").path,
            registrations: .topic(fleet.topics[.registrations]))
        settings.bootstrap = fleet.bootstrap
        // Every token was registered before the first event, and the workers' grace period
        // makes up for a registration that they read late: nothing is ambiguous.
        settings.registrationGrace = .zero
        var check = DeliveryCheck(settings)
        return try check.run()
    }

    /// Waits until every owed pair has its push.
    func delivered(within limit: Duration = .seconds(60)) async throws -> CheckReport {
        var last: CheckReport?
        var next = ContinuousClock.now
        do {
            try await fleet.eventually("every owed push", within: limit) {
                // Reading both logs takes a while.
                guard ContinuousClock.now >= next else { return false }
                next = .now + .milliseconds(250)
                let suppression = try suppression()
                last = suppression
                return suppression.isProven
            }
        } catch {
            let lines = last?.lines.joined(separator: "\n") ?? ""
            throw Timeout(description: "\(last?.summary ?? "no suppression")\n\(lines)\n\(error)")
        }
        return last!
    }
}
