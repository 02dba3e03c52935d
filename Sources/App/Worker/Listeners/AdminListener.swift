// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import LivePage
internal import Logging
internal import PushModel

/// Answers an operator's requests: how the worker does, as JSON and as a page, and the level of its
/// log.
struct AdminListener: Sendable {
    let probes: Probes
    let source: StatusSource
    let explain: ExplainSource
    let log: any AdjustableLog
    let logger: Logger

    func answer(_ request: HTTPRequest) async -> HTTPAnswer {
        if let answer = LivePage.answer(request) { return answer }
        switch request.path {
        case "/status":
            guard request.method == .get else { return .notAllowed(but: [.get]) }
            return await statusAnswer()
        case "/fleet": return LivePage.noFleet
        case "/log-level":
            switch request.method {
            case .get: return LogLevelRequest.answer(log.level)
            case .put: return changeLevel(request)
            default: return .notAllowed(but: [.get, .put])
            }
        case "/explain": return await explain.answer(request)
        default: return .notFound
        }
    }

    /// The status report; of an earlier moment, with status 503, if the planner does not answer.
    private func statusAnswer() async -> HTTPAnswer {
        let stuckThreads = probes.stuckThreads(now: PlannerLoop.clock().monotonic)
        var status: WorkerStatus
        if stuckThreads.isEmpty {
            if let body = await source.body(for: "/status", { "\(StatusReport($0).json)\n" }) {
                return HTTPAnswer(contentType: "application/json", body: body)
            }
            status = await source.latestKnown()
        } else {
            status = await source.currentOrLatest()
        }
        status.stuckThreads = stuckThreads
        return .json(StatusReport(status).json, status: status.isCurrent ? 200 : 503)
    }

    private func changeLevel(_ request: HTTPRequest) -> HTTPAnswer {
        guard let level = LogLevelRequest.level(in: request.body) else {
            return .text(LogLevelRequest.remedy, status: 400)
        }
        let before = log.level
        // The line is written at a level that shows it, whatever the two are.
        log.change(level: min(before, level, .notice))
        logger.notice(
            "an operator has changed the level of the log",
            metadata: ["from": "\(before)", "to": "\(level)"])
        log.change(level: level)
        return LogLevelRequest.answer(level)
    }
}
