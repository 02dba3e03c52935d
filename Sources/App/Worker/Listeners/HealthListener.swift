// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Logging
internal import PushModel
internal import Telemetry

/// Serves Kubernetes probes and metrics over HTTP.
struct HealthListener: Sendable {
    private let listener: HTTPListener

    init(
        _ settings: HTTPListenerSettings, probes: Probes, source: StatusSource, logger: Logger,
        isBound: @escaping @Sendable (Int) -> Void
    ) {
        listener = HTTPListener(settings, logger: logger, isBound: isBound) { question in
            await Self.answer(question, probes, source)
        }
    }

    func run() async throws { try await listener.run() }

    private static func answer(
        _ question: HTTPQuestion, _ probes: Probes, _ source: StatusSource
    ) async -> HTTPAnswer {
        guard question.method == .get else {
            return .text("this is only read", status: 405)
        }
        switch question.path {
        case "/livez": return probes.isAlive(now: PlannerLoop.clock().monotonic)
        case "/readyz": return probes.isReady(await source.status())
        case "/startupz": return probes.hasStarted(await source.status())
        case "/metrics":
            guard let status = await source.status() else {
                return .text("the planner does not answer", status: 503)
            }
            let format = MetricsText.Format(accept: question.accept)
            return HTTPAnswer(
                contentType: format.contentType,
                body: Array(MetricsText.text(WorkerMetrics.families(of: status), as: format).utf8))
        default: return .notFound
        }
    }
}
