// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
package import Telemetry

/// Every metric of a worker: what docs/metrics.md says of it, and how it is read from the worker's
/// status.
package enum WorkerMetrics {
    struct Metric: Sendable {
        let definition: MetricDefinition
        let series: @Sendable (WorkerStatus) -> [MetricFamily.Series]
    }

    package static var definitions: [MetricDefinition] { all.map(\.definition) }

    static func families(of status: WorkerStatus) -> [MetricFamily] {
        all.map { MetricFamily($0.definition, $0.series(status)) }
    }

    static let all = groups.flatMap(\.metrics)

    /// In the order of docs/metrics.md, which has a part for each.
    static let groups: [(title: String, metrics: [Metric])] = [
        ("The process", process), ("The index", index), ("Kafka", log),
        ("Events and pushes", pushes), ("Shadow", shadow), ("Outcomes", outcomes),
        ("Delivery", delivery), ("OpenTelemetry", export),
    ]

    // MARK: Kinds of metrics

    static func counter(
        _ name: String, _ help: String, _ value: @escaping @Sendable (WorkerStatus) -> Int
    ) -> Metric {
        Metric(definition: MetricDefinition(name, .counter, help)) { [.init(.integer(value($0)))] }
    }

    static func gauge(
        _ name: String, _ help: String, _ value: @escaping @Sendable (WorkerStatus) -> Int
    ) -> Metric {
        Metric(definition: MetricDefinition(name, .gauge, help)) { [.init(.integer(value($0)))] }
    }

    /// One series for each value of a label.
    static func labelled(_ name: String, _ values: [(String, Int)]) -> [MetricFamily.Series] {
        values.map { value, count in
            MetricFamily.Series(.integer(count), [(name: name, value: value)])
        }
    }

    static func metric(
        _ name: String, _ kind: MetricFamily.Kind, labels: [String], _ help: String,
        _ series: @escaping @Sendable (WorkerStatus) -> [MetricFamily.Series]
    ) -> Metric {
        Metric(definition: MetricDefinition(name, kind, labels: labels, help), series: series)
    }
}
