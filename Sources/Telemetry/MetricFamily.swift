// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A metric with its series.
package struct MetricFamily: Sendable {
    package enum Kind: String, Sendable {
        /// A number that only grows while the process lives. The name ends in `_total`.
        case counter
        case gauge
        case histogram
        /// A gauge that is always 1; its labels are what it says. The name ends in `_info`.
        case info
    }

    package struct Series: Sendable {
        package var labels: [(name: String, value: String)]
        package var value: Value

        package init(_ value: Value, _ labels: [(name: String, value: String)] = []) {
            self.value = value
            self.labels = labels
        }
    }

    package enum Value: Sendable {
        case integer(Int)
        case number(Double)
        case latency(LatencyHistogram)
    }

    package let definition: MetricDefinition
    package var series: [Series]

    package init(_ definition: MetricDefinition, _ series: [Series]) {
        self.definition = definition
        self.series = series
    }
}

/// The description of a metric. docs/metrics.md lists them.
package struct MetricDefinition: Sendable, Equatable {
    /// The name with its unit, by the conventions of Prometheus.
    package let name: String
    package let kind: MetricFamily.Kind
    /// One sentence.
    package let help: String
    package let labels: [String]

    package init(
        _ name: String, _ kind: MetricFamily.Kind, labels: [String] = [], _ help: String
    ) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.help = help
    }
}
