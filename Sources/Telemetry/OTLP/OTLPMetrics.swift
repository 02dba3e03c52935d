// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Encodes metrics as OTLP's `ExportMetricsServiceRequest` (opentelemetry-proto 1.x, protobuf).
///
/// Names, labels and meanings are those of the page for Prometheus. Counters are cumulative sums
/// since the start of the process, and a histogram has the bounds that Prometheus is given.
package enum OTLPMetrics {
    /// The most data points of one request, which bounds its size: a histogram's takes 1 KiB.
    package static let pointsMax = 2000

    /// Encodes the metrics as one request, or as several if they are many.
    package static func requests(
        _ families: [MetricFamily], of resource: OTLPResource, from start: WallTime,
        to end: WallTime, pointsMax: Int = pointsMax
    ) -> [[UInt8]] {
        let times = Times(start: start.nanoseconds, end: end.nanoseconds)
        return parts(families, pointsMax: pointsMax).map { part in
            resource.export { scope in
                for family in part { scope.message(2) { write(family, times, to: &$0) } }
            }
        }
    }

    private struct Times {
        var start: UInt64
        var end: UInt64
    }

    private static func parts(_ families: [MetricFamily], pointsMax: Int) -> [[MetricFamily]] {
        var parts: [[MetricFamily]] = [[]]
        var room = pointsMax
        for family in families where !family.series.isEmpty {
            var rest = family.series[...]
            while !rest.isEmpty {
                if room == 0 {
                    parts.append([])
                    room = pointsMax
                }
                var part = family
                part.series = Array(rest.prefix(room))
                rest = rest.dropFirst(part.series.count)
                room -= part.series.count
                parts[parts.count - 1].append(part)
            }
        }
        return parts.filter { !$0.isEmpty }
    }

    private static func write(
        _ family: MetricFamily, _ times: Times, to metric: inout ProtobufWriter
    ) {
        let definition = family.definition
        metric.text(1, definition.name)
        metric.text(2, definition.help)
        metric.text(3, unit(of: definition.name))
        switch definition.kind {
        case .gauge, .info:
            metric.message(5) { gauge in
                for series in family.series {
                    gauge.message(1) { write(series, Times(start: 0, end: times.end), to: &$0) }
                }
            }
        case .counter:
            metric.message(7) { sum in
                for series in family.series { sum.message(1) { write(series, times, to: &$0) } }
                sum.varint(2, cumulative)
                sum.flag(3, true)
            }
        case .histogram:
            metric.message(9) { histogram in
                for series in family.series {
                    histogram.message(1) { write(series, times, to: &$0) }
                }
                histogram.varint(2, cumulative)
            }
        }
    }

    /// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
    private static let cumulative: UInt64 = 2

    /// The unit in UCUM's notation, which the name ends with in words.
    private static func unit(of name: String) -> String {
        let name = name.hasSuffix("_total") ? String(name.dropLast(6)) : name
        if name.hasSuffix("_seconds") { return "s" }
        return name.hasSuffix("_bytes") ? "By" : ""
    }

    private static func write(
        _ series: MetricFamily.Series, _ times: Times, to point: inout ProtobufWriter
    ) {
        point.fixed64(2, times.start)
        point.fixed64(3, times.end)
        let labels = series.labels.map { Span.Attribute($0.name, .text($0.value)) }
        switch series.value {
        case .integer(let value):
            point.present(6, fixed64: UInt64(bitPattern: Int64(value)))
            point.attributes(7, labels)
        case .number(let value):
            point.present(4, fixed64: value.bitPattern)
            point.attributes(7, labels)
        case .latency(let histogram):
            write(histogram, to: &point)
            point.attributes(9, labels)
        }
    }

    private static func write(_ histogram: LatencyHistogram, to point: inout ProtobufWriter) {
        point.fixed64(4, histogram.count)
        point.present(5, fixed64: (Double(histogram.sum) / 1e9).bitPattern)
        point.packed(6, PublishedBuckets(histogram).counts)
        point.packed(7, PublishedBuckets.bounds.map(\.bitPattern))
    }
}

extension WallTime {
    /// Since 1970, the unit of OTLP.
    fileprivate var nanoseconds: UInt64 { UInt64(max(0, milliseconds)) * 1_000_000 }
}
