// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Reads figures from a worker's log, which must be in text format.
enum WorkerLog {
    /// How many partitions the worker has logged as unassigned. A worker that is killed logs
    /// nothing.
    static func partitionsGivenUp(in log: String) -> Int {
        log.matches(of: /(?m)^\S+ info unassigned partitions=(\d+)/)
            .reduce(0) { $0 + (Int($1.1) ?? 0) }
    }
}
