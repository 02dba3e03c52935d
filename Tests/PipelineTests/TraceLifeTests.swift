// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// Random lives of traced events, against what is known of them from outside.
@Suite struct `The life of a trace` {
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `every trace is whole: one event, one plan, and its requests`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let (eventsMax, requestsMax) = (Int(1 + random.next(below: 6)), 3)
        let fixture = PipelineFixture { settings in
            settings.seed = seed
            settings.registrationGrace = .zero
            settings.immediateFanOutMax = 2
            settings.attemptsMax = 3
            settings.tracing = TraceSettings(ratio: 0.7) { "\($0[0])" }
            settings.tracing?.eventsMax = eventsMax
            settings.tracing?.requestsMax = requestsMax
        }
        for number in 0..<12 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number + 1], shows: ["s\(number % 4)", "all"])
        }
        var spans: [Span] = []
        var inFlight: [SentPush] = []
        var answered = 0
        for _ in 0..<300 {
            switch random.next(below: 6) {
            case 0, 1:
                fixture.event(["s0", "s1", "s2", "s3", "all", "none"][Int(random.next(below: 6))])
            case 2: inFlight += fixture.take(1 + Int(random.next(below: 8)))
            case 3 where !inFlight.isEmpty:
                let push = inFlight.remove(at: Int(random.next(below: UInt64(inFlight.count))))
                answered += 1
                switch random.next(below: 4) {
                case 0: fixture.answer(push, 503, .serviceUnavailable)
                case 1: fixture.answer(push, 400, .badMessageId)
                default: fixture.answer(push, 200)
                }
            case 4: fixture.acknowledge(fixture.takeRecords())
            default: fixture.pass(.milliseconds(Int64(random.next(below: 400))))
            }
            spans += fixture.takeSpans()
        }
        // All ends.
        for _ in 0..<20 {
            inFlight += fixture.take()
            for push in inFlight { fixture.answer(push, 200) }
            answered += inFlight.count
            inFlight = []
            fixture.pass(.seconds(3))
            fixture.acknowledge(fixture.takeRecords())
            fixture.pass(.milliseconds(10))
            spans += fixture.takeSpans()
        }
        #expect(fixture.isIdle)
        let counts = try #require(fixture.traceCounts)
        #expect(counts.spansDropped == 0)
        #expect(Set(spans.map(\.id)).count == spans.count)
        #expect(spans.allSatisfy { $0.start <= $0.end })
        let traces = Dictionary(grouping: spans, by: \.trace)
        #expect(traces.count == counts.eventsTraced && counts.eventsTraced > 0)
        var requests = 0
        for trace in traces.values {
            let events = trace.filter { $0.name == "event" }
            let plans = trace.filter { $0.name == "plan" }
            let pushes = trace.filter { $0.name == "push" }
            try #require(events.count == 1 && plans.count == 1)
            #expect(plans[0].parent == events[0].id && events[0].parent == nil)
            #expect(pushes.allSatisfy { $0.parent == plans[0].id })
            #expect(trace.allSatisfy { $0.start >= events[0].start && $0.end <= events[0].end })
            guard case .integer(let count) = events[0]["lamplighter.requests"] else {
                Issue.record("no count of requests")
                continue
            }
            #expect(pushes.count == min(count, requestsMax))
            requests += count
        }
        #expect(requests <= answered)
    }
}
