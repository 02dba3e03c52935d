// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// The two clocks, as raw numbers; the floors above give them types.
package enum SystemClock {
    /// CLOCK_BOOTTIME in nanoseconds. Unlike CLOCK_MONOTONIC it goes on while the machine sleeps,
    /// or its virtual machine is suspended: what was to be done meanwhile is overdue afterwards.
    package static func monotonicNanoseconds() -> Int64 { read(CLOCK_BOOTTIME) }

    /// CLOCK_REALTIME in nanoseconds since 1970 UTC.
    package static func wallNanoseconds() -> Int64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        let code = clock_gettime(clock, &time)
        precondition(code == 0, "clock_gettime: errno \(errno)")
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
