// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a fleet reads in the log of a worker, which its configuration makes a text.
enum WorkerLog {
    /// The sum of the partitions that the worker has given up; one that is killed says nothing.
    static func partitionsGivenUp(in log: String) -> Int {
        log.matches(of: /(?m)^\S+ info given up partitions=(\d+)/)
            .reduce(0) { $0 + (Int($1.1) ?? 0) }
    }
}
