// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import Testing

@testable internal import Pipeline

@Suite struct `The fate of a push` {
    /// One control whose push was handed over.
    private struct Bench {
        let fixture: PartsFixture
        let push: SentPush

        init(payload: String? = nil, adjust: (inout PipelineSettings) -> Void = { _ in }) {
            fixture = PartsFixture(adjust: adjust)
            fixture.registerControls(1, shows: "door")
            fixture.event("door", payload)
            push = fixture.take()[0]
        }

        func outcome(
            _ status: UInt16, _ reason: APNSReason = .none, kind: PushOutcome.Kind = .answered
        ) -> PushOutcome {
            PushOutcome(
                slot: push.slot, kind: kind, status: status, reason: reason,
                sentAt: fixture.now.monotonic)
        }

        func fate(
            _ outcome: PushOutcome, isProbe: Bool = false, isBelieved: Bool = true
        ) -> PushFate {
            PushFate(
                of: outcome, isProbe: isProbe, isBelieved: isBelieved, fixture.state,
                now: fixture.now)
        }
    }

    @Test func `each answer has its fate`() {
        let bench = Bench()
        let rows: [(UInt16, APNSReason, PushFate)] = [
            (200, .none, .accepted),
            (400, .payloadEmpty, .rejected),
            (400, .badDeviceToken, .rejectedWithToken),
            (410, .unregistered, .suppressed),
            (429, .tooManyRequests, .retried(.cooledDown, costsAttempt: true)),
            (403, .invalidProviderToken, .requeued),
            (400, .topicDisallowed, .requeued),
            (500, .internalServerError, .retried(.fault, costsAttempt: true)),
        ]
        for (status, reason, fate) in rows {
            #expect(bench.fate(bench.outcome(status, reason)) == fate, "\(status) \(reason)")
        }
    }

    @Test func `what is not believed of a token ends the push alone`() {
        let bench = Bench()
        #expect(
            bench.fate(bench.outcome(410, .unregistered), isBelieved: false) == .deadUnconfirmed)
        #expect(bench.fate(bench.outcome(400, .badDeviceToken), isBelieved: false) == .rejected)
    }

    @Test func `no suppression is decided on that there is no room for`() {
        let bench = Bench { $0.unacknowledgedMax = 1 }
        bench.fixture.outbox.write(RecordDraft(.suppressions, key: [9], value: [1]))
        #expect(bench.fate(bench.outcome(410, .unregistered)) == .deadUnconfirmed)
        #expect(bench.fate(bench.outcome(400, .badDeviceToken)) == .rejected)
    }

    @Test func `a request without an answer is tried again, and costs an attempt unless it probes`()
    {
        let bench = Bench()
        let unknown = bench.outcome(0, kind: .unknown)
        #expect(bench.fate(unknown) == .retried(.unanswered, costsAttempt: true))
        #expect(bench.fate(unknown, isProbe: true) == .retried(.unanswered, costsAttempt: false))
        let unprocessed = bench.outcome(0, kind: .unprocessed)
        #expect(bench.fate(unprocessed) == .retried(.unprocessed, costsAttempt: false))
    }

    @Test func `the last attempt ends in a letter, except while APNs accepts nothing`() {
        let bench = Bench { $0.attemptsMax = 1 }
        let fault = bench.outcome(500, .internalServerError)
        #expect(bench.fate(fault) == .exhausted)
        // Without an attempt of its own it is not the last one.
        #expect(bench.fate(fault, isProbe: true) == .retried(.fault, costsAttempt: false))
        for _ in 0..<20 {
            bench.fixture.breakers.received(
                .fault, bench.fixture.route, token: TokenID(rawValue: 9),
                bytes: UnsafeRawBufferPointer(start: nil, count: 0),
                now: bench.fixture.now.monotonic)
            bench.fixture.pass(.seconds(1))
        }
        #expect(bench.fate(fault) == .retried(.fault, costsAttempt: false))
    }

    @Test func `a push whose token is gone is not tried again`() {
        let bench = Bench()
        bench.fixture.state.tokenRemoved(bench.fixture.state.pushes.token(of: bench.push.slot))
        for outcome in [
            bench.outcome(500, .internalServerError), bench.outcome(403, .invalidProviderToken),
            bench.outcome(410, .unregistered), bench.outcome(0, kind: .unknown),
        ] { #expect(bench.fate(outcome) == .notOwed) }
        // What has ended without it is told as it ended.
        #expect(bench.fate(bench.outcome(200)) == .accepted)
        #expect(bench.fate(bench.outcome(400, .payloadEmpty)) == .rejected)
    }

    @Test func `a push that expired on its way is sent if a later event has prolonged it`() {
        let bench = Bench(payload: #"{"v":1,"ttlSeconds":60}"#)
        let expired = bench.outcome(0, kind: .expired)
        #expect(bench.fate(expired) == .prolonged, "its time is not over")
        bench.fixture.pass(.seconds(61))
        #expect(bench.fate(expired) == .expired)
    }
}
