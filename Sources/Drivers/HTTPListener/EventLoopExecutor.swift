// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import NIOCore

/// Runs tasks on the thread of an event loop, so that a listener uses no thread of the pool that the
/// rest of the process shares.
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    /// SCHED_BATCH of <sched.h>, which Glibc's module leaves out.
    private static let schedBatch: Int32 = 3

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Lowers the priority of the thread.
    func run(as priority: HTTPListenerSettings.Priority) {
        eventLoop.execute {
            // 0 is the calling thread. Lowering a priority is always allowed.
            switch priority {
            case .normal: break
            case .low:
                _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
                var parameters = sched_param(sched_priority: 0)
                _ = sched_setscheduler(0, Self.schedBatch, &parameters)
            }
        }
    }
}
