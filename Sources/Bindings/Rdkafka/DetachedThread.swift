// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A thread for one call of the library of which nobody can say how long it takes.
enum DetachedThread {
    private final class Job: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// - Returns: false if no thread can be had; then `body` is not run.
    static func run(_ body: @escaping @Sendable () -> Void) -> Bool {
        let job = Unmanaged.passRetained(Job(body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { job in
                Unmanaged<Job>.fromOpaque(job!).takeRetainedValue().body()
                return nil
            }, job.toOpaque())
        guard code == 0 else {
            job.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
