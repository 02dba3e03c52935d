// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Synchronization

/// Reads registrations back from Kafka on a thread of its own: what a GET shows, and what is to be written
/// again. A replica remembers of each registration only where it is.
final class RecordStore: Sendable {
    typealias Receiver = @Sendable (RecordFetcher.Found) -> Void

    private struct Job {
        var place: RecordFetcher.Position
        var receiver: Receiver
    }

    private struct State {
        /// What is to be written again. Each has a registration of its own, so these are no more than
        /// the registrations that a former owner has overtaken.
        var repairs: [Job] = []
        var jobs: [Job] = []
        var isClosed = false

        /// Some of both, so that neither waits for all of the other.
        mutating func next() -> [Job] {
            let (some, others) = (
                repairs.prefix(RecordStore.atOnce), jobs.prefix(RecordStore.atOnce)
            )
            repairs.removeFirst(some.count)
            jobs.removeFirst(others.count)
            return Array(some + others)
        }
    }

    /// Repairs, and as many others, that are read together.
    private static let atOnce = 64

    private let state = Mutex(State())
    private let wakeUps = DispatchSemaphore(value: 0)

    /// Further questions are not asked.
    static let waitingMax = 1000
    private static let timeout = Duration.seconds(3)

    /// Starts the thread.
    func start(clients: KafkaClientSettings, topic: String, logger: Logger) throws {
        let fetcher = try RecordFetcher(settings: clients, topic: topic, logger: logger)
        let box = UncheckedBox(fetcher)
        try NamedThread.detach(name: "ll-records") { [self] in
            while true {
                wakeUps.wait()
                let (jobs, isClosed) = state.withLock { ($0.next(), $0.isClosed) }
                let waiting = Dictionary(grouping: jobs, by: \.place)
                box.value.read(waiting.keys, timeout: Self.timeout) { place, found in
                    for job in waiting[place] ?? [] { job.receiver(found) }
                }
                if jobs.isEmpty, isClosed { return }
            }
        }
    }

    /// Reads what is to be written again.
    func repair(partition: Int32, offset: Int64, _ receiver: @escaping Receiver) {
        let isTaken = state.withLock { state in
            guard !state.isClosed else { return false }
            state.repairs.append(
                Job(place: .init(partition: partition, offset: offset), receiver: receiver))
            return true
        }
        if isTaken { wakeUps.signal() } else { receiver(.unavailable) }
    }

    func record(partition: Int32, offset: Int64) async -> RecordFetcher.Found {
        await withCheckedContinuation { continuation in
            let isTaken = state.withLock { state in
                guard !state.isClosed, state.jobs.count < Self.waitingMax else { return false }
                state.jobs.append(
                    Job(place: .init(partition: partition, offset: offset)) {
                        continuation.resume(returning: $0)
                    })
                return true
            }
            if isTaken { wakeUps.signal() } else { continuation.resume(returning: .unavailable) }
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeUps.signal()
    }
}

/// Hands what belongs to one thread over to it.
struct UncheckedBox<Value>: @unchecked Sendable {
    // SAFETY: whoever makes the box does not touch the value afterwards.
    let value: Value
    init(_ value: Value) { self.value = value }
}
