// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Dispatch
import Glibc
import LinuxIO

/// Sees to it that a program that is asked to stop ends in time, whatever hangs. It takes the signals
/// on a queue of its own, since the tasks that are to handle them may be what hangs.
struct StopLimit {
    private let signals: [any DispatchSourceSignal]
    /// A signal that has come, wherever the program was.
    let requests: AsyncStream<Void>

    /// - Parameter limit: asked when the signal comes.
    init(_ limit: @escaping @Sendable () -> Duration) throws {
        try StopWatch.start()
        // A serial queue of its own gets a thread even while the pool's are all taken.
        let queue = DispatchQueue(label: "stop-limit")
        let (requests, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.requests = requests
        let stop: @Sendable () -> Void = {
            StopWatch.limit(limit())
            continuation.yield()
        }
        signals = [SIGTERM, SIGINT].map { signal in
            let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
            source.setEventHandler(handler: stop)
            // Those that came before it listened were counted.
            source.setRegistrationHandler { if StopRequests.received > 0 { stop() } }
            source.resume()
            return source
        }
    }

    /// The program has stopped: what is left is the end of the process, which is watched too.
    func stopped() {
        StopWatch.note("ending the process")
        for source in signals { source.cancel() }
    }
}
