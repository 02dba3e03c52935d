// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Logging
internal import OTLPExporter
internal import PushModel
internal import Telemetry

/// Exports the worker's metrics and the spans of its traced events until its task is cancelled. Each
/// export has a thread of the lowest priority, since it blocks until the collector answers. At most
/// one runs at a time, and nobody waits for it.
struct TelemetryExport: Sendable {
    let collector: Collector
    let source: StatusSource
    let spans: SpanQueue
    let counters: ExportCounters
    let logger: Logger

    /// How often it is looked whether something is due.
    private static let tick = Duration.milliseconds(500)

    func run() async {
        logger.notice(
            "exporting metrics and spans",
            metadata: ["endpoint": "\(collector.settings.endpoint)"])
        var schedule = ExportSchedule(
            interval: collector.settings.interval, seed: .random(in: .min ... .max),
            now: PlannerLoop.clock().monotonic)
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.tick)
            let now = PlannerLoop.clock().monotonic
            for signal in schedule.due(spans: spans.count, now: now) where !Task.isCancelled {
                await export(signal, &schedule)
            }
        }
    }

    private func export(_ signal: ExportSignal, _ schedule: inout ExportSchedule) async {
        let result: Collector.Result?
        switch signal {
        case .metrics:
            // A planner that does not answer is told by the probes.
            guard let status = await source.status() else { return }
            result = await onThread { [collector] in
                collector.export(
                    WorkerMetrics.families(of: status), from: status.process.startedAt,
                    to: status.at)
            }
        case .traces:
            result = await onThread { [collector, counters, spans] in
                let now = PlannerLoop.clock()
                return collector.export(
                    spans.take(),
                    wallStart: now.wall.milliseconds * 1_000_000 - now.monotonic.nanoseconds
                ) { count, outcome in counters.count(spans: count, outcome) }
            }
        }
        guard let result else { return }
        counters.count(result.outcome, of: signal)
        let news = schedule.ended(
            result.outcome, signal, retryAfter: result.retryAfter,
            now: PlannerLoop.clock().monotonic)
        tell(news, signal, result)
    }

    private func tell(
        _ news: ExportSchedule.News?, _ signal: ExportSignal, _ result: Collector.Result
    ) {
        let url = collector.settings.url(of: signal)
        switch news {
        case .fails:
            logger.warning(
                "telemetry is not exported; pushes go on",
                metadata: [
                    "signal": "\(signal.rawValue)", "url": "\(url)",
                    "cause": "\((result.cause ?? "").printable)",
                ])
        case .works:
            logger.notice(
                "telemetry is exported again",
                metadata: ["signal": "\(signal.rawValue)", "url": "\(url)"])
        case nil: break
        }
    }

    /// Runs `work` on a thread of the lowest priority.
    /// - Returns: nil if the task was cancelled first, or there is no thread.
    private func onThread(
        _ work: @escaping @Sendable () -> Collector.Result
    ) async -> Collector.Result? {
        try? await AwaitedAnswer<Collector.Result?>.onThread(named: "otlp", cancelled: .some(nil)) {
            NamedThread.lowerPriority()
            return work()
        }
    }
}
