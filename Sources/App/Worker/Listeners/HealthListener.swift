// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import Telemetry

/// Answers Kubernetes probes, and requests of metrics.
struct HealthListener: Sendable {
    let probes: Probes
    let source: StatusSource

    func answer(_ question: HTTPQuestion) async -> HTTPAnswer {
        guard question.method == .get else { return .notAllowed(but: [.get]) }
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
