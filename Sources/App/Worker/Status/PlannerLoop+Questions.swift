// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import Pipeline
internal import PushModel

/// The explanations that listeners have asked for, in their order.
struct OpenInquiries {
    struct Open<Inquiry, Explanation: Sendable> {
        var inquiry: Inquiry
        let answer: AwaitedAnswer<Explanation?>
    }

    var tokens: [Open<TokenInquiry, TokenExplanation>] = []
    var events: [Open<EventInquiry, EventExplanation>] = []
    var allowance = InquiryAllowance()

    var isEmpty: Bool { tokens.isEmpty && events.isEmpty }

    /// When the planner is to go on with them.
    func nextDue(now: MonotonicTime) -> MonotonicTime {
        isEmpty ? .distantFuture : allowance.resumes(now: now)
    }

    mutating func dropGivenUp() {
        tokens.removeAll { $0.answer.isTold }
        events.removeAll { $0.answer.isTold }
    }
}

/// Answers what listeners have asked: the status at once, explanations a part in each turn.
extension PlannerLoop {
    /// Returns whether there is more to answer at once.
    mutating func answerQuestions(now: Now) -> Bool {
        for question in control.takeQuestions() {
            switch question {
            case .status(let answer): answer.tell(status(now: now))
            case .tokens(let question, let answer):
                inquiries.tokens.append(
                    OpenInquiries.Open(inquiry: TokenInquiry(question, pipeline), answer: answer))
            case .event(let record, let answer):
                inquiries.events.append(
                    OpenInquiries.Open(inquiry: EventInquiry(record), answer: answer))
            }
        }
        guard !inquiries.isEmpty else { return false }
        inquiries.dropGivenUp()
        guard inquiries.allowance.mayWork(now: now.monotonic) else { return false }
        let begun = Self.clock().monotonic
        advanceInquiry(now: now)
        inquiries.allowance.took(Self.clock().monotonic - begun)
        return !inquiries.isEmpty
    }

    /// Does the next part of one explanation.
    private mutating func advanceInquiry(now: Now) {
        let tokenID: TokenInquiry.TokenHash = { SHA256Digest.prefix(of: $0) }
        if !inquiries.tokens.isEmpty {
            guard inquiries.tokens[0].inquiry.advance(pipeline, now: now, tokenID: tokenID) else {
                return
            }
            let done = inquiries.tokens.removeFirst()
            done.answer.tell(done.inquiry.explanation)
        } else if !inquiries.events.isEmpty {
            let isDone = inquiries.events[0].inquiry.advance(
                pipeline, now: now, tokenID: tokenID)
            guard isDone else { return }
            let done = inquiries.events.removeFirst()
            done.answer.tell(done.inquiry.explanation)
        }
    }
}
