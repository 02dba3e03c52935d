// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Synchronization

/// Reads registrations back from Kafka, one at a time, on a thread of its own: what a GET shows, and
/// what is to be written again. A replica remembers of each registration only where it is.
final class RecordStore: Sendable {
    typealias Receiver = @Sendable ([UInt8]?) -> Void

    private struct Job {
        var partition: Int32
        var offset: Int64
        var receiver: Receiver
    }

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wakeUps = DispatchSemaphore(value: 0)

    /// Further questions are answered with nil.
    static let waitingMax = 1000
    private static let timeout = Duration.seconds(3)

    /// Starts the thread.
    func start(clients: KafkaClientSettings, topic: String, logger: Logger) throws {
        let fetcher = try RecordFetcher(settings: clients, topic: topic, logger: logger)
        let box = UncheckedBox(fetcher)
        try NamedThread.detach(name: "ll-records") { [self] in
            while true {
                wakeUps.wait()
                let (job, isClosed) = state.withLock { state in
                    (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isClosed)
                }
                if let job {
                    job.receiver(
                        box.value.value(
                            partition: job.partition, offset: job.offset, timeout: Self.timeout))
                } else if isClosed {
                    return
                }
            }
        }
    }

    func fetch(partition: Int32, offset: Int64, _ receiver: @escaping Receiver) {
        let isTaken = state.withLock { state in
            guard !state.isClosed, state.jobs.count < Self.waitingMax else { return false }
            state.jobs.append(Job(partition: partition, offset: offset, receiver: receiver))
            return true
        }
        if isTaken { wakeUps.signal() } else { receiver(nil) }
    }

    func value(partition: Int32, offset: Int64) async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            fetch(partition: partition, offset: offset) { continuation.resume(returning: $0) }
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
