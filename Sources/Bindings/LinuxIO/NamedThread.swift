// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// A thread of our own, outside the cooperative pool, whose name shows in `top -H` and `perf`.
package struct NamedThread: ~Copyable, Sendable {
    private let handle: pthread_t

    /// - Parameter name: at most 15 bytes, the kernel's limit.
    package static func start(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) -> NamedThread {
        NamedThread(handle: try spawn(name: name, body))
    }

    /// Starts a thread that nobody waits for.
    package static func detach(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let code = pthread_detach(try spawn(name: name, body))
        precondition(code == 0, "pthread_detach: \(code)")
    }

    /// Waits until the thread's body has returned.
    package consuming func join() {
        let code = pthread_join(handle, nil)
        precondition(code == 0, "pthread_join: \(code)")
    }

    /// Gives the calling thread the lowest scheduling priority.
    package static func lowerPriority() {
        // 0 is the calling thread. Lowering a priority is always allowed.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
    }

    /// Suspends the calling thread, for up to an hour.
    package static func sleep(_ duration: Duration) {
        let microseconds = min(max(duration / .microseconds(1), 0), 3.6e9)
        usleep(UInt32(microseconds))
    }

    private static func spawn(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) -> pthread_t {
        precondition(
            name.utf8.count <= 15,
            "a thread's name has at most 15 bytes, which is what the kernel keeps")
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var handle = pthread_t()
        let code = pthread_create(
            &handle, nil,
            { context in
                let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
                CLinux_nameThread(start.name)
                CLinux_useSignalStack()
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw SystemError(call: "pthread_create", code: code)
        }
        return handle
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
