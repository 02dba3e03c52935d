// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OTLPExporter
internal import Pipeline
internal import Telemetry

extension WorkerMetrics {
    // MARK: OpenTelemetry

    /// These have series where `otlp.endpoint` is set.
    static let export: [Metric] = [
        metric(
            "lamplighter_otlp_exports_total", .counter, labels: ["signal", "outcome"],
            "Exports to the OpenTelemetry collector: `delivered`, `refused` by its answer, or "
                + "`unanswered`."
        ) { status in
            guard let export = status.export else { return [] }
            return ExportSignal.allCases.flatMap { signal in
                ExportOutcome.allCases.map { outcome in
                    MetricFamily.Series(
                        .integer(export.collector.exports[signal]?[outcome] ?? 0),
                        [("signal", signal.rawValue), ("outcome", outcome.rawValue)])
                }
            }
        },
        metric(
            "lamplighter_otlp_spans_total", .counter, labels: ["outcome"],
            "Spans that were exported, lost with an export that failed, or dropped for want of room."
        ) { status in
            guard let export = status.export else { return [] }
            return labelled(
                "outcome",
                [
                    ("exported", export.collector.spansExported),
                    ("lost", export.collector.spansLost), ("dropped", export.spansDropped),
                ])
        },
        metric(
            "lamplighter_events_traced_total", .counter, labels: ["outcome"],
            "Sampled events, by whether they were traced or left out because too many were under way."
        ) { status in
            guard let export = status.export else { return [] }
            return labelled(
                "outcome",
                [
                    ("traced", export.traced.eventsTraced),
                    ("left_out", export.traced.eventsLeftOut),
                ])
        },
    ]
}
