// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import Pipeline
internal import PushModel
internal import RecordFormats

/// Answers questions about tokens and records over HTTP. The planner thread finds the answers, beside
/// its work.
actor ExplainSource {
    private let control: WorkerControl
    private let plan: WorkerPlan
    private let patience: Duration
    private var open = 0

    /// The planner works on one question at a time, and each keeps memory.
    static let openMax = 4

    /// - Parameter patience: going through ten million registrations takes seconds on a worker that
    ///   is busy.
    init(_ control: WorkerControl, plan: WorkerPlan, patience: Duration = .seconds(30)) {
        self.control = control
        self.plan = plan
        self.patience = patience
    }

    /// Answers a request for `/explain`.
    func answer(_ request: HTTPRequest) async -> HTTPAnswer {
        do throws(RefusedQuestion) {
            switch request.method {
            case .get: return try await tokens(TokenQuestion(query: request.query))
            case .post: return try await event(EventQuestion(body: request.body))
            default: return .notAllowed(but: [.get, .post])
            }
        } catch {
            return .text(error.remedy, status: error.status)
        }
    }

    private func tokens(_ question: TokenQuestion) async throws(RefusedQuestion) -> HTTPAnswer {
        if let app = question.app, plan.routing.app(named: app) == nil {
            let shown = String(app.unicodeScalars.prefix(256)).printable
            throw RefusedQuestion(
                "'\(shown)' is no app of this worker's apns.credentials, which have "
                    + plan.routing.apps.sorted().listed(most: 20))
        }
        let explanation = try await ask { .tokens(question, $0) }
        return .json(
            ExplainJSON.text(
                TokenReply(explanation, phase: control.currentPhase, now: PlannerLoop.clock())))
    }

    private func event(_ question: EventQuestion) async throws(RefusedQuestion) -> HTTPAnswer {
        let now = PlannerLoop.clock()
        let topic: String
        do throws(UnreadTopic) { topic = try plan.topicOfEvents(named: question.topic) } catch {
            throw RefusedQuestion(error.message)
        }
        let record = TrialRecord(
            binding: plan.eventTopics.firstIndex(of: topic) ?? 0, key: question.key,
            value: question.value, timestamp: question.time ?? now.wall, headers: question.headers)
        let explanation = try await ask { .event(record, $0) }
        return .json(
            ExplainJSON.text(
                EventReply(
                    explanation, topic: topic, phase: control.currentPhase,
                    now: PlannerLoop.clock())))
    }

    private func ask<Value: Sendable>(
        _ question: @Sendable (AwaitedAnswer<Value?>) -> PlannerQuestion
    ) async throws(RefusedQuestion) -> Value {
        guard open < Self.openMax else {
            throw RefusedQuestion(
                "\(open) questions are being answered already: ask again later", status: 503)
        }
        open += 1
        defer { open -= 1 }
        guard let value = await control.answer(within: patience, question) else {
            throw RefusedQuestion(
                "the planner has not answered in time: see /status. A token ID is looked for among "
                    + "all tokens, so it takes longest; a subject or an installation is found at "
                    + "once", status: 503)
        }
        return value
    }
}

extension TokenQuestion {
    /// The app that the question is limited to.
    fileprivate var app: String? {
        switch self {
        case .subject(_, let app): app
        case .installation(_, let app, _, _): app
        case .token: nil
        }
    }
}

/// Why a question is not answered, and what to do about it.
struct RefusedQuestion: Error {
    let remedy: String
    var status = 400

    init(_ remedy: String, status: Int = 400) {
        self.remedy = remedy
        self.status = status
    }
}
