// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What a token is sent in a day is counted, and thinned where that is asked for.
@Suite struct `Budgets of tokens` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture
    private static let hour = Duration.seconds(3600)

    init() {
        pipeline = Self.fixture(thin: true)
        deferred = DeferredFixture(pipeline)
        deferred.assign()
    }

    /// A worker with a budget of four pushes a control and day: a window lasts six hours.
    private static func fixture(
        thin: Bool, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.budgets[.controls] = 4
            settings.budgets.isThinning = thin
            settings.events.changeTTL = .seconds(86_400)
            adjust(&settings)
        }
        pipeline.registerControl("A", [1, 2], shows: ["door"])
        return pipeline
    }

    /// An event comes, and what can be sent is accepted.
    /// - Returns: how many pushes were.
    private func send(_ value: String? = nil) -> Int {
        pipeline.event("door", value)
        return deliver()
    }

    private func deliver() -> Int {
        var accepted = 0
        for _ in 0..<4 {
            pipeline.pass(.zero)
            for push in pipeline.take() {
                pipeline.answer(push, 200)
                accepted += 1
            }
            deferred.produce()
            deferred.read()
        }
        return accepted
    }

    private func spendBudget() {
        for _ in 0..<4 { #expect(send() == 1) }
    }

    private var use: BudgetUse { pipeline.pipeline.budgetUses(now: pipeline.now)[0] }
    private var top: [SubjectOverBudget] {
        pipeline.pipeline.subjectsOverBudget(now: pipeline.now)
    }

    /// How long until the token's window ends.
    private func untilWindowEnd(_ token: [UInt8] = [1, 2]) -> Duration {
        let end = token.withUnsafeBytes {
            pipeline.pipeline.state.budgets.windowEnd($0, .controls, now: pipeline.now.wall)
        }
        return end - pipeline.now.wall
    }

    // MARK: Counting

    @Test func `what is above the budget is counted, with its subject`() {
        let pipeline = Self.fixture(thin: false)
        pipeline.registerControl("B", [3, 4], shows: ["lamp"])
        func use() -> BudgetUse { pipeline.pipeline.budgetUses(now: pipeline.now)[0] }
        for number in 1...7 {
            pipeline.event("door")
            #expect(pipeline.deliverAll().count == 1)
            #expect(use().tokensOver == (number > 4 ? 1 : 0))
            #expect(use().pushesOver == max(0, number - 4))
        }
        for _ in 0..<5 {
            pipeline.event("lamp")
            #expect(pipeline.deliverAll().count == 1)
        }
        #expect(use().tokensOver == 2)
        #expect(pipeline.counters.pushesOverBudget == 4)
        let top = pipeline.pipeline.subjectsOverBudget(now: pipeline.now)
        #expect(top.map(\.subject) == ["door", "lamp"])
        #expect(top.map(\.pushes) == [3, 1])
        #expect(top.allSatisfy { $0.app == PipelineFixture.app })
    }

    @Test func `only what APNs has accepted is counted`() {
        for _ in 0..<6 {
            pipeline.event("door")
            let sent = pipeline.take()
            #expect(sent.count == 1)
            pipeline.answer(sent[0], 400, .badCollapseId)
            pipeline.pass(.zero)
        }
        spendBudget()
    }

    @Test func `a day of UTC begins with nothing, and with no subject`() {
        spendBudget()
        #expect(send() == 0)
        pipeline.pass(untilWindowEnd())
        #expect(deliver() == 1)
        #expect(use.tokensOver == 1 && top.count == 1, "what comes from deferred counts too")
        let midnight = 86_400_000 - pipeline.now.wall.milliseconds % 86_400_000
        pipeline.pass(.milliseconds(midnight))
        #expect(use.tokensOver == 0 && use.pushesOver == 0 && top.isEmpty)
        spendBudget()
        #expect(use.tokensOver == 0)
    }

    @Test func `a token that has the row of one that is gone begins with nothing`() {
        spendBudget()
        pipeline.unregister("A")
        pipeline.pass(.seconds(1))
        pipeline.registerControl("B", [8, 9], shows: ["door"])
        spendBudget()
        #expect(use.tokensOver == 0)
    }

    @Test func `a type without a budget is not counted`() {
        pipeline.register("P", [.device([7, 7], shows: ["phone"], hearsChanges: true)])
        for _ in 0..<9 {
            pipeline.event("phone")
            #expect(deliver() == 1)
        }
        #expect(pipeline.counters.pushesOverBudget == 0)
        #expect(pipeline.pipeline.budgetUses(now: pipeline.now).map(\.type) == ["controls"])
    }

    // MARK: Thinning

    @Test func `above the budget the last of a window is sent, and no event waits for it`() {
        spendBudget()
        for _ in 0..<3 {
            #expect(send() == 0)
            pipeline.pass(.seconds(30))
        }
        #expect(pipeline.committableOffset == 7)
        #expect(pipeline.counters.pushesThinned == 3)
        let left = untilWindowEnd()
        #expect(left > .zero && left <= Self.hour * 6)
        pipeline.pass(left - .milliseconds(1))
        #expect(deliver() == 0)
        pipeline.pass(.milliseconds(1))
        #expect(deliver() == 1, "one push tells of all three")
        #expect(use.pushesOver == 1)
        #expect(send() == 0, "the next one waits for the next window")
        pipeline.pass(untilWindowEnd())
        #expect(deliver() == 1)
    }

    @Test func `a push with a payload is sent, whatever the budget`() {
        let pipeline = Self.fixture(thin: true) { settings in
            settings.budgets[.background] = 1
        }
        pipeline.register("P", [.device([7, 7], shows: ["phone"], hearsChanges: true)])
        for number in 1...3 {
            pipeline.event("phone", #"{"v":1,"payload":{"aps":{"content-available":1}}}"#)
            let sent = pipeline.deliverAll()
            #expect(sent.map(\.type) == [.background])
            #expect(pipeline.counters.pushesOverBudget == number - 1)
        }
        pipeline.event("phone")
        #expect(pipeline.deliverAll().isEmpty, "it has none, and the budget is spent")
    }

    @Test(arguments: [(-1, 1), (30, 1), (70, 0)])
    func `a push that would expire before its window ends, or soon after, is sent`(
        secondsAfter: Int, sent: Int
    ) {
        spendBudget()
        let seconds = Int(untilWindowEnd() / .seconds(1)) + secondsAfter
        #expect(send(#"{"v":1,"ttlSeconds":\#(seconds)}"#) == sent)
    }

    @Test func `what follows a push that has waited for its window waits for the next`() {
        spendBudget()
        #expect(send() == 0)
        pipeline.pass(untilWindowEnd())
        let sent = pipeline.take()
        #expect(sent.count == 1)
        pipeline.event("door")
        pipeline.answer(sent[0], 200)
        #expect(deliver() == 0, "its follow-up")
        pipeline.pass(untilWindowEnd())
        #expect(deliver() == 1)
    }

    @Test func `a push that waits for its window is not put off by an event at its end`() {
        spendBudget()
        #expect(send() == 0)
        pipeline.pass(untilWindowEnd() - .milliseconds(1))
        pipeline.event("door")
        pipeline.pass(.milliseconds(1))
        #expect(deliver() == 1)
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `a further try of a push is not thinned`() {
        let pipeline = Self.fixture(thin: true) { settings in
            settings.budgets[.background] = 1
        }
        pipeline.register("P", [.device([7, 7], shows: ["phone"], hearsChanges: true)])
        pipeline.event("phone")
        let refused = pipeline.take()
        #expect(refused.count == 1)
        pipeline.answer(refused[0], 503, .serviceUnavailable)
        pipeline.event("phone", #"{"v":1,"payload":{"aps":{"content-available":1}}}"#)
        #expect(pipeline.deliverAll().count == 1, "the budget is spent")
        pipeline.pass(.seconds(5))
        #expect(pipeline.deliverAll().count == 1, "the first one, again")
    }

    @Test(arguments: [true, false])
    func `without room for deferred pushes it is sent`(isTableFull: Bool) {
        spendBudget()
        if isTableFull {
            pipeline.pipeline.state.settings.deferredMax = 0
        } else {
            pipeline.pipeline.state.settings.deferralBytesMax = 0
        }
        #expect(send() == 1)
    }

    @Test func `a budget that is lifted holds nothing back any more`() throws {
        spendBudget()
        #expect(send() == 0)
        var settings = pipeline.pipeline.state.settings
        settings.budgets = PushBudgets()
        try pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(send() == 1)
        #expect(pipeline.pipeline.budgetUses(now: pipeline.now).isEmpty)
        pipeline.pass(Self.hour * 6)
        #expect(deliver() == 1, "what was deferred comes at the end of its window")
        settings.budgets[.controls] = 4
        try pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(use.perDay == 4 && use.pushesOver == 0)
    }

    @Test func `another budget begins to count anew`() throws {
        spendBudget()
        var settings = pipeline.pipeline.state.settings
        settings.budgets[.controls] = 2
        settings.budgets.isThinning = false
        try pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        for number in 1...4 {
            #expect(send() == 1)
            #expect(use.tokensOver == (number > 2 ? 1 : 0))
        }
        #expect(use.pushesOver == 2 && top.map(\.pushes) == [2])
        pipeline.unregister("A")
        pipeline.pass(.seconds(1))
        #expect(top.isEmpty, "nobody shows the subject any more")
    }

    @Test func `where a long gap holds, it is the bound`() {
        let withGap = Self.fixture(thin: true) { settings in
            settings.minimumGaps[.controls] = .seconds(60)
        }
        let deferred = DeferredFixture(withGap)
        deferred.assign()
        for _ in 0..<6 {
            withGap.event("door")
            for _ in 0..<6 {
                withGap.pass(.zero)
                for push in withGap.take() { withGap.answer(push, 200) }
                deferred.produce()
                deferred.read()
            }
            withGap.pass(.seconds(60))
        }
        #expect(withGap.counters.accepted == 6)
        #expect(withGap.counters.pushesThinned == 0)
    }

    // MARK: Windows

    @Test func `windows are even shares of the day, the same for all workers and apart by token`() {
        let other = Self.fixture(thin: true) { $0.seed = 99 }
        var ends: Set<Int64> = []
        for number in UInt8(0)..<100 {
            let token: [UInt8] = [number, 1]
            let (own, others) = token.withUnsafeBytes { bytes in
                (
                    pipeline.pipeline.state.budgets.windowEnd(
                        bytes, .controls, now: pipeline.now.wall),
                    other.pipeline.state.budgets.windowEnd(
                        bytes, .controls, now: pipeline.now.wall)
                )
            }
            #expect(own == others)
            let next = token.withUnsafeBytes {
                pipeline.pipeline.state.budgets.windowEnd($0, .controls, now: own)
            }
            #expect(next - own == Self.hour * 6)
            ends.insert(own.milliseconds)
        }
        #expect(ends.count > 95)
    }

    // MARK: Frequent subjects

    @Test func `a frequent subject is found among many rare ones`() {
        var subjects = FrequentSubjects()
        func count(_ number: UInt32) {
            let subject = SubjectID(rawValue: number)
            subjects.count(
                FrequentSubjects.Entry(
                    subject: subject, tag: number, app: AppID(rawValue: 0), count: 1))
        }
        for round in UInt32(0)..<1000 {
            count(1_000_000)
            count(round + 1)
            if round % 2 == 0 { count(2_000_000) }
        }
        let top = subjects.top(2)
        #expect(top.map(\.subject.rawValue) == [1_000_000, 2_000_000])
        #expect(top[0].count >= 1000 && top[0].count <= 1000 + 1000 / FrequentSubjects.most * 2)
        #expect(subjects.top(1000).count == FrequentSubjects.most)
    }
}
