// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
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
    private let events = Mutex<[EventLine]>([])
    /// The topic is this test's alone, so the next offset of a partition is known.
    private let nextOffset = Mutex<[Int64]>(
        Array(repeating: 0, count: Int(FleetTopics.partitions)))

    init(_ fleet: Fleet, subjects count: Int, tokensEach: Int) throws {
        self.fleet = fleet
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

    /// The group has joined and every partition is read: one event each has been answered.
    func begin() async throws {
        let before = fleet.simulator.counts.accepted
        try await emit(Int(FleetTopics.partitions))
        let pushes = subjects.prefix(Int(FleetTopics.partitions)).reduce(0) {
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
            // A little less than a worker's reading, so that the stream lasts.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func emit(_ numbers: Range<Int>) throws {
        let t = SystemClock.wallNanoseconds()
        var records: [WrittenRecord] = []
        var lines: [EventLine] = []
        for number in numbers {
            let index = number % subjects.count
            let partition = Int32(index) % FleetTopics.partitions
            let offset = nextOffset.withLock { next in
                defer { next[Int(partition)] += 1 }
                return next[Int(partition)]
            }
            records.append(
                WrittenRecord(
                    topic: .events, key: subjects[index], value: nil, partition: partition))
            lines.append(
                EventLine(
                    t: t, topic: fleet.topics[.events], partition: partition, offset: offset,
                    app: TestApp.home, subject: subjects[index]))
        }
        try fleet.write(records)
        events.withLock { $0 += lines }
    }

    /// Judges by both logs, as an outsider would.
    func audit() throws -> DeliveryAudit {
        let log = fleet.directory.appending(path: "events.ndjson")
        let encoder = JSONEncoder()
        let lines = try events.withLock { $0 }.map { try encoder.encode($0) + [0x0A] }
        try Data(lines.joined()).write(to: log)
        let decoder = JSONDecoder()
        let read = try Data(contentsOf: log).split(separator: 0x0A).map {
            try decoder.decode(EventLine.self, from: $0)
        }
        return DeliveryAudit(events: read, answers: try answers(), tokens: tokens)
    }

    func answers() throws -> [AnswerLine] {
        try AnswerLine.read(fleet.directory.appending(path: "answers.ndjson"))
    }

    /// Waits until every owed pair has its push.
    func delivered(within limit: Duration = .seconds(60)) async throws -> DeliveryAudit {
        var last: DeliveryAudit?
        var next = ContinuousClock.now
        do {
            try await fleet.eventually("every owed push", within: limit) {
                // Reading both logs takes a while.
                guard ContinuousClock.now >= next else { return false }
                next = .now + .milliseconds(250)
                let audit = try audit()
                last = audit
                return audit.lost.isEmpty
            }
        } catch {
            let lost = last?.lost ?? []
            throw Timeout(
                description: "\(lost.count) of \(last?.owed ?? 0) owed pushes are lost, as "
                    + "\(lost.prefix(5))\n\(error)")
        }
        return last!
    }
}
