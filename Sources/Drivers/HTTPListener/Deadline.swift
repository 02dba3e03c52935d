// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore

/// A moment on an event loop by which something must have happened. It can be moved on without a cost: NIO
/// searches all of its timers for one that is cancelled, so the one of a deadline is left alone, and
/// looks at the clock when it rings.
final class Deadline {
    private let eventLoop: any EventLoop
    private let missed: () -> Void
    private var due: NIODeadline?
    private var timer: (at: NIODeadline, scheduled: Scheduled<Void>)?

    init(on eventLoop: any EventLoop, missed: @escaping () -> Void) {
        self.eventLoop = eventLoop
        self.missed = missed
    }

    var isSet: Bool { due != nil }

    func set(_ limit: Duration) {
        let due = NIODeadline.now() + TimeAmount(limit)
        self.due = due
        if let timer, timer.at <= due { return }
        timer?.scheduled.cancel()
        ring(at: due)
    }

    func clear() { due = nil }

    /// Clears it for good.
    func cancel() {
        due = nil
        timer?.scheduled.cancel()
        timer = nil
    }

    private func ring(at time: NIODeadline) {
        let scheduled = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [self] in
            // One that is due may still run after it was cancelled.
            guard timer?.at == time else { return }
            timer = nil
            guard let due else { return }
            if due > .now() { return ring(at: due) }
            self.due = nil
            missed()
        }
        timer = (time, scheduled)
    }
}
