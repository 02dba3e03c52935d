// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import LinuxIO

/// The resources that this process has used so far.
enum ProcessUsage {
    /// User and system time of all threads, in microseconds. Not inlined: instructions.py tells callgrind to
    /// count what runs between two calls.
    @inline(never)
    static var cpuMicroseconds: Int {
        var usage = rusage()
        precondition(getrusage(RUSAGE_SELF.rawValue, &usage) == 0, "getrusage: errno \(errno)")
        return microseconds(usage.ru_utime) + microseconds(usage.ru_stime)
    }

    private static func microseconds(_ time: timeval) -> Int {
        time.tv_sec * 1_000_000 + Int(time.tv_usec)
    }

    /// A line of `/proc/self/status` such as `VmRSS` or `VmHWM`, in bytes.
    static func statusBytes(_ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
            let count = Int(kibibytes)
        else { throw BenchError("/proc/self/status has no \(name)") }
        return count * 1024
    }
}
