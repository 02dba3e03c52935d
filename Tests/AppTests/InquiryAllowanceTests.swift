// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@testable import Worker

@Suite struct `An inquiry allowance` {
    private let start = MonotonicTime(nanoseconds: 5_000_000_000)

    @Test func `an inquiry allowance lets one long question go on without a pause`() {
        var allowance = InquiryAllowance()
        var now = start
        for _ in 0..<19_000 {
            let mayWork = allowance.mayWork(now: now)
            #expect(mayWork)
            allowance.took(.microseconds(100))
            now = now + .microseconds(100)
        }
    }

    @Test func `an inquiry allowance gives a flood of questions a fortieth of the time`() {
        var allowance = InquiryAllowance()
        var now = start
        allowance.took(InquiryAllowance.most)
        var worked = Duration.zero
        while now - start < .seconds(60) {
            if allowance.mayWork(now: now) {
                allowance.took(.microseconds(100))
                worked += .microseconds(100)
                now = now + .microseconds(100)
            } else {
                let resumes = allowance.resumes(now: now)
                #expect(resumes > now && resumes - now < .milliseconds(5))
                now = resumes
            }
        }
        #expect((1.45...1.55).contains(worked / .seconds(1)))
    }

    @Test func `an inquiry allowance is no larger after a day than after minutes`() {
        var allowance = InquiryAllowance()
        _ = allowance.mayWork(now: start)
        let nextDay = start + .seconds(86_400)
        _ = allowance.mayWork(now: nextDay)
        allowance.took(InquiryAllowance.most)
        let mayWork = allowance.mayWork(now: nextDay)
        #expect(!mayWork)
    }

    @Test func `the planner lets a question wait while the inquiry allowance is used up`() throws {
        let planner = try PlannerLoopFixture()
        let answer = AwaitedAnswer<TokenExplanation?>()
        let isAsked = planner.control.ask(.tokens(.token(7), answer))
        #expect(isAsked)
        let now = planner.now
        _ = planner.loop.inquiries.allowance.mayWork(now: now.monotonic)
        planner.loop.inquiries.allowance.took(InquiryAllowance.most + .seconds(1))
        for _ in 0..<100 {
            let isBusy = planner.loop.answerQuestions(now: now)
            #expect(!isBusy)
        }
        #expect(!answer.isTold)
        let due = planner.loop.inquiries.nextDue(now: now.monotonic)
        #expect(due > now.monotonic + .seconds(30))
        let later = Now(monotonic: due + .seconds(40), wall: now.wall)
        var turns = 0
        while planner.loop.answerQuestions(now: later), turns < 100 { turns += 1 }
        #expect(answer.isTold)
    }
}
