// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Writes metrics as text, in Prometheus's format or in OpenMetrics 1.0.
package enum MetricsText {
    package enum Format: Sendable {
        case prometheus, openMetrics

        /// The format that a scraper asks for by its `Accept` header.
        package init(accept: String) {
            let isWanted = accept.lowercased().split(separator: ",").contains { range in
                let parts = range.filter { $0 != " " && $0 != "\t" }.split(separator: ";")
                return parts.first == "application/openmetrics-text"
                    && !parts.dropFirst().contains { $0.wholeMatch(of: /q=0(\.0*)?/) != nil }
            }
            self = isWanted ? .openMetrics : .prometheus
        }

        package var contentType: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .openMetrics:
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }
    }

    package static func text(_ families: [MetricFamily], as format: Format) -> String {
        var text = ""
        for family in families where !family.series.isEmpty { write(family, as: format, to: &text) }
        if format == .openMetrics { text += "# EOF\n" }
        return text
    }

    private static func write(
        _ family: MetricFamily, as format: Format, to text: inout String
    ) {
        let definition = family.definition
        // OpenMetrics names a family without the suffixes of its samples.
        let name =
            format == .openMetrics
            ? definition.name.without("_total").without("_info") : definition.name
        let isInfo = definition.kind == .info && format == .prometheus
        text += "# HELP \(name) \(escaped(help: definition.help))\n"
        text += "# TYPE \(name) \(isInfo ? "gauge" : definition.kind.rawValue)\n"
        for series in family.series {
            precondition(
                series.labels.map(\.name) == definition.labels,
                "\(definition.name) has exactly the labels of its definition")
            switch series.value {
            case .integer(let value):
                text += "\(definition.name)\(labels(series.labels)) \(value)\n"
            case .number(let value):
                text += "\(definition.name)\(labels(series.labels)) \(number(value))\n"
            case .latency(let histogram):
                write(histogram, definition.name, series.labels, to: &text)
            }
        }
    }

    private static func write(
        _ histogram: LatencyHistogram, _ name: String, _ own: [(name: String, value: String)],
        to text: inout String
    ) {
        var below: UInt64 = 0
        for (bound, count) in zip(PublishedBuckets.bounds, PublishedBuckets(histogram).counts) {
            below += count
            let all = own + [("le", number(bound))]
            text += "\(name)_bucket\(labels(all)) \(below)\n"
        }
        text += "\(name)_bucket\(labels(own + [("le", "+Inf")])) \(histogram.count)\n"
        text += "\(name)_sum\(labels(own)) \(number(Double(histogram.sum) / 1e9))\n"
        text += "\(name)_count\(labels(own)) \(histogram.count)\n"
    }

    private static func labels(_ labels: [(name: String, value: String)]) -> String {
        guard !labels.isEmpty else { return "" }
        let pairs = labels.map { "\($0.name)=\"\(escaped(label: $0.value))\"" }
        return "{" + pairs.joined(separator: ",") + "}"
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return "\(value)"
    }

    private static func escaped(help: String) -> String {
        help.escaping(["\\": "\\\\", "\n": "\\n"])
    }

    private static func escaped(label: String) -> String {
        label.escaping(["\\": "\\\\", "\n": "\\n", "\"": "\\\""])
    }
}

extension String {
    fileprivate func without(_ suffix: String) -> String {
        hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
    }

    fileprivate func escaping(_ escapes: [Character: String]) -> String {
        reduce(into: "") { $0 += escapes[$1] ?? String($1) }
    }
}

extension Duration {
    package var seconds: Double { Double(nanoseconds) / 1e9 }
}
