// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `Restarts of the consumer` {
    @Test func `the consumer is opened again when it asks for it, and not again for half a minute`()
    {
        var restarts = ConsumerRestarts()
        #expect(!restarts.isDue(now: at(0)))
        restarts.ask()
        #expect(restarts.isDue(now: at(0)))
        restarts.restarted(now: at(0))
        #expect(!restarts.isDue(now: at(60_000)))
        restarts.ask()
        #expect(!restarts.isDue(now: at(29_999)))
        #expect(restarts.isDue(now: at(30_000)))
    }

    @Test func `the consumer joins anew soon after its static name was given away, once and again`()
    {
        var restarts = ConsumerRestarts()
        restarts.ask()
        restarts.restarted(now: at(0))
        for (time, wait) in [(10_000, 2000), (20_000, 4000)] as [(Int64, Int64)] {
            let mayReturn = restarts.fenced(now: at(time))
            #expect(mayReturn)
            #expect(!restarts.isDue(now: at(time + wait - 1)))
            #expect(restarts.isDue(now: at(time + wait)))
            restarts.restarted(now: at(time + wait))
            #expect(!restarts.isDue(now: at(time + wait)))
        }
    }

    @Test func `the consumer leaves its static name to another that takes it again and again`() {
        var restarts = ConsumerRestarts()
        var answers: [Bool] = []
        for time in [0, 5000, 11_000] as [Int64] { answers.append(restarts.fenced(now: at(time))) }
        #expect(answers == [true, true, false])
    }

    @Test func `the consumer survives a coordinator that is away again and again`() {
        var restarts = ConsumerRestarts()
        for outage in 0..<20 as Range<Int64> {
            let mayReturn = restarts.fenced(now: at(outage * 60_000))
            #expect(mayReturn)
        }
    }
}
