// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Synchronization

/// A thread that can be waited for once.
final class ServingThread: Sendable {
    private let thread: Mutex<NamedThread?>

    init(_ thread: consuming NamedThread) { self.thread = Mutex(thread) }

    func join() {
        if let thread = thread.withLock({ $0.take() }) { thread.join() }
    }
}
