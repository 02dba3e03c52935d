// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// One epoll set and the buffer its events are read into; owned by the thread that waits on it.
/// Level-triggered: what was not read is reported again.
package struct Epoll: ~Copyable {
    package struct Interest: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let read = Interest(rawValue: EPOLLIN.rawValue)
        package static let write = Interest(rawValue: EPOLLOUT.rawValue)
    }

    package struct Event: Sendable {
        /// The tag that the descriptor was added with.
        package let tag: UInt64
        fileprivate let bits: UInt32

        /// Whether reading gives bytes, the end of the stream, or the error.
        package var isReadable: Bool {
            bits & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
        }
        /// Whether writing makes progress or gives the error.
        package var isWritable: Bool {
            bits & (EPOLLOUT.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
        }
    }

    private let descriptor: CInt
    private let events: UnsafeMutablePointer<epoll_event>
    private let eventsMax: Int

    /// - Parameter eventsMax: how many events one wait reads; the rest come with the next.
    package init(eventsMax: Int = 64) throws(SystemError) {
        precondition(eventsMax > 0, "epoll_wait has room for at least one event")
        descriptor = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw .last("epoll_create1") }
        events = .allocate(capacity: eventsMax)
        self.eventsMax = eventsMax
    }

    deinit {
        close(descriptor)
        events.deallocate()
    }

    package func add(
        _ target: CInt, for interest: Interest, tag: UInt64
    ) throws(SystemError) {
        try control(EPOLL_CTL_ADD, target, interest, tag)
    }

    package func modify(
        _ target: CInt, for interest: Interest, tag: UInt64
    ) throws(SystemError) {
        try control(EPOLL_CTL_MOD, target, interest, tag)
    }

    /// Must come before the descriptor is closed.
    package func remove(_ target: CInt) throws(SystemError) {
        try control(EPOLL_CTL_DEL, target, [], 0)
    }

    /// Sleeps until something is ready, and returns how many events `event(_:)` may be asked for.
    /// A signal ends the sleep with none.
    /// - Parameter timeout: nil sleeps without end; fractions of a millisecond are rounded up, so
    ///   that a deadline has passed when its sleep ends.
    package func wait(timeout: Duration?) -> Int {
        let count = epoll_wait(descriptor, events, CInt(eventsMax), Self.milliseconds(timeout))
        // EBADF, EFAULT and EINVAL cannot happen to a descriptor and a buffer of our own.
        precondition(count >= 0 || errno == EINTR, "epoll_wait: errno \(errno)")
        return max(0, Int(count))
    }

    package func event(_ index: Int) -> Event {
        precondition(
            index >= 0 && index < eventsMax, "an event's index lies within the buffer of events")
        let event = events[index]
        return Event(tag: event.data.u64, bits: event.events)
    }

    private static func milliseconds(_ timeout: Duration?) -> CInt {
        guard let timeout else { return -1 }
        let (seconds, attoseconds) = timeout.components
        if seconds < 0 || attoseconds < 0 { return 0 }
        let perMillisecond: Int64 = 1_000_000_000_000_000
        // A day is as good as for ever here, and keeps the sum within a CInt.
        let whole = min(seconds, 86_400) * 1000
        return CInt(whole + (attoseconds + perMillisecond - 1) / perMillisecond)
    }

    private func control(
        _ operation: CInt, _ target: CInt, _ interest: Interest, _ tag: UInt64
    ) throws(SystemError) {
        var event = epoll_event()
        event.events = interest.rawValue
        event.data.u64 = tag
        guard epoll_ctl(descriptor, operation, target, &event) == 0 else {
            throw .last("epoll_ctl")
        }
    }
}
