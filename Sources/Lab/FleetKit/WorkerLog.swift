// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Reads figures from a worker's log, which must be in text format.
enum WorkerLog {
    /// The port that the worker's probes and metrics are on; nil while it does not listen.
    static func healthPort(in log: String) -> Int? {
        log.firstMatch(of: /listening for probes and for requests of metrics .*port=(\d+)/)
            .flatMap { Int($0.1) }
    }

    /// The port that the worker answers operators on; nil while it does not listen.
    static func adminPort(in log: String) -> Int? {
        log.firstMatch(of: /listening for requests of operators .*port=(\d+)/)
            .flatMap { Int($0.1) }
    }

    /// How many partitions the worker has logged as unassigned. A worker that is killed logs
    /// nothing.
    static func partitionsGivenUp(in log: String) -> Int {
        log.matches(of: /(?m)^\S+ info unassigned partitions=(\d+)/)
            .reduce(0) { $0 + (Int($1.1) ?? 0) }
    }
}
