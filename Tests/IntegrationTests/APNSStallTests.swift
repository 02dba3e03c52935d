// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import KafkaLog
import LinuxIO
import Logging
import Testing

/// APNs takes requests and answers none, and events go on coming faster than they could ever be
/// sent.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            recordRequests: 10, registrationGrace: .milliseconds(200),
            shutdownTimeout: .seconds(100))))
struct `A stall of APNs` {
    private static let subjects = 10_000
    private static let tokensEach = 10
    /// `STALL_SECONDS=600` for more.
    private static let seconds =
        ProcessInfo.processInfo.environment["STALL_SECONDS"].flatMap(Double.init) ?? 20
    /// What a worker may have by its configuration: 64 MiB of records that Kafka has handed over, and
    /// 0.4 KiB of the library's for each of 100,000; `delivery.queuedMax` pushes of half a KiB; a
    /// deferred push of about 250 bytes and a registration of as many for each of 100,000 tokens;
    /// 32,768 deferrals of 1 KiB that wait for Kafka's acknowledgement, with the worker and once more
    /// in the producer; and 140 MiB for the program, its threads and what the allocator keeps of what
    /// one thread takes and another gives back. 357 MiB were the most in a stall of 600 s.
    private static let residentMaxMiB =
        64 + 40 + 65_536 / 2 / 1024 + 2 * subjects * tokensEach * 250 / 1_048_576 + 2 * 32 + 140

    @Test func `memory is bounded while APNs is stalled, and a stop is in time`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = try #require(fleet.workers.first)
        for batch in 0..<10 {
            let numbers = batch * Self.subjects / 10..<(batch + 1) * Self.subjects / 10
            try fleet.register(
                numbers.map { number in
                    .controls(
                        (0..<Self.tokensEach).map { _ in TestToken() },
                        show: ["subject-\(number)"])
                })
        }
        try await fleet.registrationsApplied()
        let idle = try resident(worker)
        fleet.simulator.perform(.stall(true))
        let sizes = try await flood(fleet, worker)
        print(
            "RSS with APNs stalled for \(Self.seconds) s under \(sizes.events) events: "
                + "\(idle.now) MiB before, then \(sizes.resident) MiB, at most "
                + "\(try resident(worker).most) MiB of \(Self.residentMaxMiB)")
        #expect(try resident(worker).most <= Self.residentMaxMiB)

        // One that takes longer than `delivery.shutdownTimeout` ends with another status.
        worker.signal(SIGTERM)
        #expect(try await worker.finish(within: .seconds(120)) == 0)
    }

    /// Writes events as fast as Kafka takes them, and looks at the worker's memory ten times.
    private func flood(
        _ fleet: Fleet, _ worker: FleetProcess
    ) async throws -> (events: Int, resident: [Int]) {
        let producer = try RecordProducer(
            settings: KafkaClientSettings(bootstrap: fleet.bootstrap, group: ""),
            topics: [fleet.topics[.events]],
            logger: Logger(label: "flood", factory: { _ in SwiftLogNoOpLogHandler() }))
        var events = 0
        var sizes: [Int] = []
        let start = ContinuousClock.now
        while ContinuousClock.now - start < .seconds(Self.seconds) {
            for _ in 0..<100 {
                let name = Array("subject-\(events % Self.subjects)".utf8)
                let acceptance = name.withUnsafeBytes {
                    producer.produce(topic: 0, key: $0, value: nil, ticket: 0)
                }
                if acceptance == .accepted { events += 1 }
            }
            // The embedded Kafka drops what is beyond 5 MiB of a partition: what is lost here is not
            // the point.
            producer.poll(now: .current) { _, _ in }
            if (ContinuousClock.now - start) / .seconds(Self.seconds) > Double(sizes.count) / 10 {
                sizes.append(try resident(worker).now)
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        return (events, sizes)
    }

    /// In MiB: VmRSS and VmHWM.
    private func resident(_ worker: FleetProcess) throws -> (now: Int, most: Int) {
        let status = try String(
            contentsOfFile: "/proc/\(worker.identifier)/status", encoding: .utf8)
        func mebibytes(_ name: String) throws -> Int {
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name) })
            let words = line.split(whereSeparator: \.isWhitespace)
            return try #require(Int(words[1])) / 1024
        }
        return (try mebibytes("VmRSS:"), try mebibytes("VmHWM:"))
    }
}
