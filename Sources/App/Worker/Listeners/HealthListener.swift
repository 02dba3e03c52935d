// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel
internal import Telemetry

/// Answers Kubernetes probes, and requests of metrics.
struct HealthListener: Sendable {
    let probes: Probes
    let source: StatusSource

    func answer(_ request: HTTPRequest) async -> HTTPAnswer {
        guard request.method == .get else { return .notAllowed(but: [.get]) }
        switch request.path {
        case "/livez": return probes.isAlive(now: PlannerLoop.clock().monotonic)
        case "/readyz": return probes.isReady(await source.status())
        case "/startupz": return probes.hasStarted(await source.status())
        case "/metrics":
            let format = MetricsText.Format(accept: request.accept)
            let body = await source.body(for: format.contentType) {
                MetricsText.text(WorkerMetrics.families(of: $0), as: format)
            }
            guard let body else { return probes.unanswered }
            return HTTPAnswer(contentType: format.contentType, body: body)
        default: return .notFound
        }
    }
}
