// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Telemetry

extension WorkerMetrics {
    /// The text of docs/metrics.md: an introduction and a table of each group of metrics.
    package static var reference: String {
        let body = groups.map { table($0.title, $0.metrics.map(\.definition)) }
            .joined(separator: "\n\n")
        return [introduction, PageContents.list(of: body), body].joined(separator: "\n\n") + "\n"
    }

    private static func table(_ title: String, _ definitions: [MetricDefinition]) -> String {
        let head = "## \(title)\n\n| metric | type | labels | meaning |\n|---|---|---|---|"
        let rows = definitions.map { definition in
            let labels = definition.labels.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(definition.name)` | \(definition.kind.rawValue) | \(labels) | "
                + "\(definition.help.replacing("|", with: "\\|")) |"
        }
        return ([head] + rows).joined(separator: "\n")
    }

    private static let introduction = """
        <!-- Written by `make docs` from the table in Sources/App/Worker/Status. -->

        # Metrics

        A worker serves its metrics at `/metrics` on the port that `health.port` names, as text for
        Prometheus, or as OpenMetrics 1.0 where the scraper asks for that. An answer is at most 0.2 s
        old. Counters begin at 0 with each process, and a series whose labels name an app, a reason or
        a breaker begins with its first count. No label holds a token, a subject or anything else
        that a record chooses: topics, partitions, apps, credentials, push types, phases, outcomes,
        known reasons, parts and threads are bounded.

        A registrar has metrics of its own: [registrar.md](registrar.md#what-it-tells).

        What is worth an alert, and what to do then: [runbook.md](runbook.md#alerts).

        Pushes add up at any time: `lamplighter_pushes_queued_total`, `_followed_up_total`,
        `_resumed_total` and `_unqueued_total` of a worker are together what has ended
        (`lamplighter_pushes_total`), what was deferred (`lamplighter_pushes_deferred_total`) and what
        is in memory (`lamplighter_pushes_waiting` but for its state `deferred`).
        """
}
