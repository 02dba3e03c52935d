// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// The CPU time and the file descriptors of this process.
package enum ProcessUsage {
    /// The CPU time of all threads since the start, the kernel's work for them included, in
    /// nanoseconds.
    package static var cpuNanoseconds: Int64 {
        var time = timespec()
        let code = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        precondition(code == 0, "clock_gettime: errno \(errno)")
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// How many file descriptors are open; nil where the kernel does not tell.
    package static var fileDescriptors: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        // Not the folder's own, and neither "." nor "..".
        var count = -3
        while readdir(folder) != nil { count += 1 }
        return max(0, count)
    }

    /// How many file descriptors may be open (the soft limit of RLIMIT_NOFILE).
    package static var fileDescriptorsMax: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return nil
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises the soft limit of RLIMIT_NOFILE to the hard one, which every process may do: shells and
    /// service managers start one with 1024 for the sake of programs that use select(2).
    /// - Returns: how many file descriptors may be open; nil where the kernel does not tell.
    @discardableResult
    package static func raiseFileDescriptorsMax() -> Int? {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return nil }
        limit.rlim_cur = limit.rlim_max
        // A hard limit above fs.nr_open, as some containers have, is refused: the soft one stays.
        _ = setrlimit(resource, &limit)
        return fileDescriptorsMax
    }
}
