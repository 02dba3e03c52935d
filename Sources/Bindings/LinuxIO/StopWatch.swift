// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc
internal import Synchronization

/// Ends the process where its stop takes too long, whatever hangs. The watch has a thread of its
/// own, made before anything can hang, and takes no lock.
package enum StopWatch {
    /// What the process then ends with; no code of sysexits(3) means this.
    package static let exitCode: CInt = 79

    private static let waker = Waker()
    /// On the monotonic clock, in nanoseconds.
    private static let deadline = Atomic<Int64>(.max)
    /// The address of a literal, which is there for ever.
    private static let step = Atomic<UInt>(0)

    /// Starts the thread. In a process that does not call this, `limit` and `note` do nothing.
    package static func start() throws(SystemError) {
        note("nothing has taken note of it")
        _ = deadline.load(ordering: .relaxed)
        try NamedThread.detach(name: "stop-watch") { watch() }
    }

    /// From now on the process ends by itself within this time. Only the first call counts.
    package static func limit(_ time: Duration) {
        let due = SystemClock.monotonicNanoseconds() + Int64(time / .nanoseconds(1))
        let (isFirst, _) = deadline.compareExchange(
            expected: .max, desired: due, ordering: .acquiringAndReleasing)
        if isFirst { waker.signal() }
    }

    /// Notes what is being done towards the end, which is what hangs if the time runs out.
    package static func note(_ current: StaticString) {
        step.store(UInt(bitPattern: current.utf8Start), ordering: .releasing)
    }

    private static func watch() {
        while true {
            let left = deadline.load(ordering: .acquiring) - SystemClock.monotonicNanoseconds()
            guard left > 0 else { break }
            var wakeUp = pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&wakeUp, 1, CInt(min(left / 1_000_000 + 1, 60_000)))
            waker.awake()
        }
        let literal = UnsafePointer<CChar>(bitPattern: step.load(ordering: .acquiring))
        let doing = literal.map { String(cString: $0) } ?? ""
        CLinux_end(
            exitCode,
            "the stop took too long, so the process ends at once; this had not ended: \(doing). "
                + "Nothing is lost: what is not committed is read again")
    }
}
