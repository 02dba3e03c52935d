// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Reads figures from a worker's log, in text or in JSON. Several workers may have written it, one
/// after another.
enum WorkerLog {
    /// The port that the last worker's probes and metrics are on; nil while it does not listen.
    static func healthPort(in log: String) -> Int? {
        port(in: log, of: "listening for probes and for requests of metrics")
    }

    /// The port that the last worker answers operators on; nil while it does not listen.
    static func adminPort(in log: String) -> Int? {
        port(in: log, of: "listening for requests of operators")
    }

    private static func port(in log: String, of message: String) -> Int? {
        log.split(separator: "\n").last { $0.contains(message) }?
            .firstMatch(of: /(?: port=|"port":)(\d+)/).flatMap { Int($0.1) }
    }

    /// How many partitions the workers have logged as unassigned. A worker that is killed logs
    /// nothing.
    static func partitionsGivenUp(in log: String) -> Int {
        log.split(separator: "\n")
            .filter { $0.contains(#/ info unassigned |"message":"unassigned",/#) }
            .compactMap { $0.firstMatch(of: /(?: partitions=|"partitions":)(\d+)/) }
            .reduce(0) { $0 + (Int($1.1) ?? 0) }
    }
}
