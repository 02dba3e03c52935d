// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `A wait for Kafka` {
    private let start = ContinuousClock.now

    private func wait(_ limit: Duration) -> KafkaWait { KafkaWait(limit: limit, now: start) }

    @Test func `a look that passes, or that no waiting mends, is the last`() {
        for look in [KafkaWait.Look.passed, .wrong] {
            var wait = wait(.seconds(60))
            #expect(wait.looked(look, at: start) == .end)
        }
    }

    @Test func `what is missing is told once, and again when it is something else`() {
        var wait = wait(.seconds(60))
        let second = Duration.seconds(1)
        #expect(wait.looked(.pending("a"), at: start) == .again(pause: second, telling: "a"))
        #expect(wait.looked(.pending("a"), at: start) == .again(pause: second, telling: nil))
        #expect(wait.looked(.pending("b"), at: start) == .again(pause: second, telling: "b"))
        #expect(wait.looked(.pending("a"), at: start) == .again(pause: second, telling: "a"))
        #expect(wait.looked(.passed, at: start) == .end)
    }

    @Test func `the last look is at the deadline, and nothing begins after it`() {
        var wait = wait(.seconds(3))
        let late = start + .milliseconds(2700)
        #expect(
            wait.looked(.pending("a"), at: late)
                == .again(pause: .milliseconds(300), telling: "a"))
        #expect(wait.looked(.pending("a"), at: start + .seconds(3)) == .end)
    }

    @Test func `a look takes no longer than the rest of the time, but a second at least`() {
        let wait = wait(.seconds(60))
        #expect(wait.lookTimeout(at: start) == .seconds(10))
        #expect(wait.lookTimeout(at: start + .seconds(56)) == .seconds(4))
        #expect(wait.lookTimeout(at: start + .seconds(60)) == .seconds(1))
    }

    @Test func `without a time there is one look, with all the time that it needs`() {
        var wait = wait(.zero)
        #expect(wait.lookTimeout(at: start) == .seconds(10))
        #expect(wait.looked(.pending("a"), at: start) == .end)
    }
}
