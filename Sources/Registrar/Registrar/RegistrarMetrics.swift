// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Telemetry

/// The registrar's metrics: each with its definition, and how it is read.
package enum RegistrarMetrics {
    struct Source {
        var counters: RegistrarCounters
        var isKafkaAnswering: Bool
        var requests: [(kind: RequestTally.Kind, count: UInt64)]
        var version: String
        var commit: String
    }

    private struct Metric {
        var definition: MetricDefinition
        var series: (Source) -> [MetricFamily.Series]

        init(
            _ name: String, _ kind: MetricFamily.Kind, labels: [String] = [], _ help: String,
            _ series: @escaping (Source) -> [MetricFamily.Series]
        ) {
            definition = MetricDefinition(name, kind, labels: labels, help)
            self.series = series
        }

        static func single(
            _ name: String, _ kind: MetricFamily.Kind, _ help: String,
            _ value: @escaping (Source) -> Int
        ) -> Metric {
            Metric(name, kind, help) { [MetricFamily.Series(.integer(value($0)))] }
        }
    }

    nonisolated(unsafe) private static let all: [Metric] = [
        Metric(
            "lamplighter_registrar_build_info", .info, labels: ["version", "commit"],
            "What this registrar was built from."
        ) {
            [
                MetricFamily.Series(
                    .integer(1), [(name: "version", value: $0.version), ("commit", $0.commit)])
            ]
        },
        Metric(
            "lamplighter_registrar_requests_total", .counter, labels: ["method", "status"],
            "Requests that were answered; a batch is one."
        ) { source in
            source.requests.map {
                MetricFamily.Series(
                    .integer(Int($0.count)),
                    [(name: "method", value: $0.kind.method), ("status", "\($0.kind.status)")])
            }
        },
        .single(
            "lamplighter_registrar_partitions", .gauge,
            "Partitions of the registrations topic that this replica owns."
        ) { $0.counters.owned.count },
        .single(
            "lamplighter_registrar_partitions_unavailable", .gauge,
            "Partitions of these that Kafka cannot serve: without a leader, or not to be read."
        ) { $0.counters.unavailable.count },
        .single(
            "lamplighter_registrar_kafka_answers", .gauge,
            "1 while Kafka says who owns the registrations, 0 if it has not for 10 s."
        ) { $0.isKafkaAnswering ? 1 : 0 },
        .single(
            "lamplighter_registrar_registrations", .gauge,
            "Registrations that this replica remembers: those of its partitions."
        ) { $0.counters.registrations },
        .single(
            "lamplighter_registrar_memory_bytes", .gauge, "Memory reserved for them."
        ) { $0.counters.bytes },
        .single(
            "lamplighter_registrar_writes_in_flight", .gauge,
            "Writes that wait for Kafka's acknowledgement."
        ) { $0.counters.underWay },
        .single(
            "lamplighter_registrar_unacknowledged_total", .counter,
            "Writes that were answered 503 because Kafka had not acknowledged them in time."
        ) { Int($0.counters.unacknowledged) },
        .single(
            "lamplighter_registrar_written_again_total", .counter,
            "Registrations and removals written again, since a former owner of their partition had written after them."
        ) { Int($0.counters.writtenAgain) },
        .single(
            "lamplighter_registrar_records_read_total", .counter,
            "Records of the registrations topic that were read, replays included."
        ) { Int($0.counters.recordsRead) },
    ]

    static func families(of source: Source) -> [MetricFamily] {
        all.map { MetricFamily($0.definition, $0.series(source)) }
    }

    /// The table of docs/registrar.md.
    package static var reference: String {
        let rows = all.map(\.definition).map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |\n"
        }
        return "| metric | type | labels | what it is |\n|---|---|---|---|\n" + rows.joined()
    }
}
