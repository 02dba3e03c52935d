// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import Synchronization

/// What a listener asks of the planner thread, with where the answer goes. One that is given up gets
/// nil from who asked, and is no longer answered.
enum PlannerQuestion: Sendable {
    case status(AwaitedAnswer<WorkerStatus?>)
    case tokens(TokenQuestion, AwaitedAnswer<TokenExplanation?>)
    case event(TrialRecord, AwaitedAnswer<EventExplanation?>)

    var isGivenUp: Bool {
        switch self {
        case .status(let answer): answer.isTold
        case .tokens(_, let answer): answer.isTold
        case .event(_, let answer): answer.isTold
        }
    }
}

extension WorkerControl {
    /// Asks the planner and waits for its answer.
    /// - Returns: nil if it does not answer in time.
    func answer<Value: Sendable>(
        within patience: Duration, _ question: @Sendable (AwaitedAnswer<Value?>) -> PlannerQuestion
    ) async -> Value? {
        let answer = AwaitedAnswer<Value?>()
        let timer = Task {
            try? await Task.sleep(for: patience)
            answer.tell(nil)
        }
        defer { timer.cancel() }
        if !ask(question(answer)) { answer.tell(nil) }
        return await answer.value
    }
}

/// The questions that wait for the planner's next turn.
final class PlannerQuestions: Sendable {
    private let isAny = Atomic<Bool>(false)
    private let waiting = Mutex<[PlannerQuestion]>([])

    /// Those that a stuck planner leaves unanswered are given up after seconds.
    private static let waitingMax = 8

    func add(_ question: PlannerQuestion) -> Bool {
        let isTaken = waiting.withLock { waiting in
            waiting.removeAll(where: \.isGivenUp)
            guard waiting.count < Self.waitingMax else { return false }
            waiting.append(question)
            return true
        }
        if isTaken { isAny.store(true, ordering: .releasing) }
        return isTaken
    }

    func takeAll() -> [PlannerQuestion] {
        guard isAny.load(ordering: .relaxed), isAny.exchange(false, ordering: .acquiring) else {
            return []
        }
        return waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
    }
}
