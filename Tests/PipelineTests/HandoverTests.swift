// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `The handover` {
    /// Controls 1, 2, …, each of which shows a subject of its own number that has changed.
    private func fixture(
        controls: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PartsFixture {
        let fixture = PartsFixture(adjust: adjust)
        for number in 1...UInt8(controls) {
            fixture.registerControls(1, shows: "s\(number)", from: number)
            fixture.event("s\(number)")
        }
        return fixture
    }

    // MARK: What is handed over

    @Test func `the hand-over takes pushes in the order in which they became ready`() {
        let fixture = fixture(controls: 3)
        for subject in ["s3", "s1"] { fixture.event(subject) }
        let first = fixture.take(2).map(\.token)
        #expect(first == [[1], [2]])
        // What is read after the hand-over needs another push, which stands behind the third.
        fixture.event("s2")
        let second = fixture.deliverAll()
        #expect(second == [[3]])
    }

    @Test func `the hand-over takes what the batch has room for and the pool's breaker allows`() {
        let fixture = fixture(controls: 20)
        let batch = fixture.take(5)
        #expect(batch.map(\.token) == (1...5).map { [$0] })
        for push in batch { fixture.answer(push, 200) }
        fixture.breakers.credentialRefused(
            fixture.route, .invalidProviderToken, now: fixture.now.monotonic)
        #expect(fixture.take().isEmpty && fixture.pushes == 15)
        fixture.pass(.seconds(900))
        let probe = fixture.take()
        #expect(probe.count == 1 && fixture.take().isEmpty)
        fixture.answer(probe[0], 200)
        #expect(fixture.take().count == 8 && fixture.take().isEmpty, "it starts slowly")
    }

    @Test func `the hand-over ends what is dead by now, and takes the next in its place`() {
        let fixture = PartsFixture()
        fixture.registerControls(3, shows: "hot")
        fixture.registerControls(1, shows: "short", from: 4)
        fixture.event("short", #"{"v":1,"ttlSeconds":60}"#)
        fixture.event("hot")
        fixture.feedSuppression(of: [1], registeredAt: fixture.now.wall)
        fixture.pass(.seconds(60))
        #expect(fixture.take(1).map(\.token) == [[2]])
        #expect(fixture.counters.expired == 1 && fixture.counters.suppressed == 1)
        #expect(fixture.pushes == 2 && fixture.counters.handedOver == 1)
        #expect(fixture.allowance == .max - 1, "the pool counts what went, and that alone")
    }

    @Test func `the hand-over lends a long token's copy until the outcome is here`() {
        let fixture = PartsFixture()
        let token = (0..<200).map { UInt8($0) }
        fixture.register("A", [.control(token, shows: ["s"])])
        fixture.registerControls(1, shows: "s")
        fixture.event("s")
        let pushes = fixture.take()
        let slot = pushes.first { $0.token == token }!.slot
        let isCopied = pushes.map { fixture.state.slab.push($0.slot).pointee.longToken != nil }
        #expect(isCopied == pushes.map { $0.slot == slot }, "a short token is in the slab")
        // The audience frees the token's row, and gives its memory to another.
        fixture.register("A")
        fixture.register("B", [.control(token.reversed(), shows: ["s"])])
        #expect(Array(fixture.state.slab.token(slot)) == token)
        for push in pushes { fixture.answer(push, 503, .serviceUnavailable) }
        #expect(fixture.state.slab.push(slot).pointee.longToken == nil)
    }

    @Test func `the hand-over gives a push the same apns-id on every worker`() {
        let workers = [1, 2].map { seed in fixture(controls: 2) { $0.seed = seed } }
        let ids = workers.map { $0.take().map(\.apnsID) }
        #expect(ids[0] == ids[1] && ids[0][0] != ids[0][1])
    }

    // MARK: What becomes of it

    /// An outcome, and what it must lead to.
    struct Course: Sendable {
        var kind = PushOutcome.Kind.answered
        var status: UInt16 = 0
        var reason = APNSReason.none
        /// The one counter of those of outcomes that it adds to; nil if none.
        var counter: String?
        /// The attempts that the push has had afterwards; nil if it has ended.
        var attempts: Int?
        var isBlocked = false
        var records: [RecordTopic] = []
        var hasLetter = false
    }

    private static let courses = [
        Course(status: 200, counter: "accepted"),
        Course(
            status: 410, reason: .unregistered, counter: "unregistered", records: [.suppressions]),
        Course(status: 400, reason: .badMessageId, counter: "rejected", hasLetter: true),
        Course(status: 413, reason: .payloadTooLarge, counter: "rejected", hasLetter: true),
        Course(status: 429, reason: .tooManyRequests, counter: "cooledDown", attempts: 1),
        Course(status: 500, reason: .internalServerError, counter: "retried", attempts: 1),
        Course(status: 503, reason: .shutdown, counter: "resent", attempts: 1),
        Course(
            status: 403, reason: .invalidProviderToken, counter: "requeued", attempts: 0,
            isBlocked: true),
        Course(
            status: 400, reason: .topicDisallowed, counter: "requeued", attempts: 0,
            isBlocked: true),
        Course(kind: .unprocessed, counter: "unprocessed", attempts: 0),
        Course(kind: .unknown, counter: "unanswered", attempts: 1),
    ]

    /// The counters of pushes that are sent again.
    private static let tries = [
        "retried", "resent", "unanswered", "cooledDown", "unprocessed", "requeued",
    ]

    @Test(arguments: courses)
    func `the hand-over lets each outcome take its course`(_ course: Course) {
        let fixture = fixture()
        let slot = fixture.take()[0].slot
        fixture.outcome(
            PushOutcome(
                slot: slot, kind: course.kind, status: course.status, reason: course.reason,
                sentAt: fixture.now.monotonic))
        let ends = [
            "accepted", "expired", "suppressed", "unregistered", "deadUnconfirmed", "rejected",
        ]
        let outcomes = ends + Self.tries
        let counted = fixture.counters.named.filter { outcomes.contains($0.name) && $0.value != 0 }
        #expect(counted.map(\.name) == (course.counter.map { [$0] } ?? []))
        #expect(counted.allSatisfy { $0.value == 1 })
        let attempts = fixture.pushes == 0 ? nil : Int(fixture.state.pushes[slot].attempts)
        #expect(attempts == course.attempts)
        #expect(fixture.takeRecordTopics() == course.records)
        let (hasLetter, isBlocked) = (
            !fixture.outbox.letters.isEmpty,
            fixture.breakers.isBlocking(fixture.route, now: fixture.now.monotonic)
        )
        #expect(hasLetter == course.hasLetter && isBlocked == course.isBlocked)
        let isHeld = course.attempts != nil || hasLetter || !course.records.isEmpty
        #expect(fixture.claims == (isHeld ? 1 : 0))
    }

    @Test(arguments: courses.filter { $0.status != 200 && !$0.hasLetter })
    func `the hand-over ends a push whose token has gone, whatever its outcome`(_ course: Course) {
        let fixture = fixture()
        let slot = fixture.take()[0].slot
        fixture.register("I1")
        fixture.outcome(
            PushOutcome(
                slot: slot, kind: course.kind, status: course.status, reason: course.reason,
                sentAt: fixture.now.monotonic))
        #expect(fixture.counters.unregistered == 1 && fixture.pushes == 0)
        let tries = fixture.counters.named.filter { Self.tries.contains($0.name) }
        #expect(tries.allSatisfy { $0.value == 0 } && tries.count == Self.tries.count)
        #expect(fixture.takeRecordTopics() == [] && fixture.claims == 0)
    }
}
