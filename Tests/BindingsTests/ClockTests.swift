// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Testing

@Suite struct `The clocks` {
    /// `/proc/uptime` is CLOCK_BOOTTIME; where a machine has slept CLOCK_MONOTONIC is behind it.
    @Test func `the clock that deadlines go by counts the time for which the machine slept`() throws
    {
        let text = try String(contentsOfFile: "/proc/uptime", encoding: .utf8)
        let uptime = try #require(text.split(separator: " ").first.flatMap { Double($0) })
        let seconds = Double(SystemClock.monotonicNanoseconds()) / 1e9
        #expect(abs(seconds - uptime) < 5)
    }
}
