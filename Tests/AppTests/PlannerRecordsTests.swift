// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import Worker

private func at(_ milliseconds: Int64) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000),
        wall: WallTime(milliseconds: 1_763_712_000_000 + milliseconds))
}

@Suite struct `The planner's schedule` {
    @Test func `offsets are stored soon after something was read, and seldom otherwise`() {
        var schedule = TurnSchedule(now: at(0))
        #expect(!schedule.isStoreDue(at(99)) && schedule.isStoreDue(at(100)))
        schedule.stored(anything: true, at(100))
        #expect(!schedule.isStoreDue(at(199)) && schedule.isStoreDue(at(200)))
        schedule.stored(anything: false, at(200))
        #expect(!schedule.isStoreDue(at(1199)) && schedule.isStoreDue(at(1200)))
        schedule.wasBusy(at(500))
        #expect(!schedule.isStoreDue(at(599)) && schedule.isStoreDue(at(600)))
        // Whoever reads all the time does not put it off.
        schedule.wasBusy(at(590))
        #expect(schedule.isStoreDue(at(600)))
        #expect(schedule.next == at(600).monotonic)
    }

    @Test func `it is looked after every five seconds, once`() {
        var schedule = TurnSchedule(now: at(0))
        let due = [4999, 5000, 5001, 9999, 10_000].map { schedule.isWatchDue(at($0)) }
        #expect(due == [false, true, false, false, true])
        schedule.stored(anything: false, at(60_000))
        #expect(schedule.next == at(15_000).monotonic)
    }
}

@Suite struct `The planner's stop` {
    @Test func `lasts until the grace period of every event is over, unless configured otherwise`()
        throws
    {
        for (text, isEnough) in [
            ("", true), ("index: {registrationGrace: 19s}", true),
            ("index: {registrationGrace: 20s}", false),
            ("delivery: {shutdownTimeout: 7s}", false), ("delivery: {shutdownTimeout: 8s}", true),
            ("{index: {registrationGrace: 60s}, delivery: {shutdownTimeout: 70s}}", true),
        ] {
            let plan = WorkerPlan(try configuration(text))
            #expect(plan.stopsInTime == isEnough, "\(text)")
        }
    }
}

@Suite struct `The planner's consumer` {
    @Test func `is opened anew when it asks for it, and not again for half a minute`() {
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

    @Test func `joins anew soon after its static name was given away, once and again`() {
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

    @Test func `leaves its static name to another worker that takes it again and again`() {
        var restarts = ConsumerRestarts()
        var answers: [Bool] = []
        for time in [0, 5000, 11_000] as [Int64] { answers.append(restarts.fenced(now: at(time))) }
        #expect(answers == [true, true, false])
    }

    @Test func `survives a coordinator that is away again and again`() {
        var restarts = ConsumerRestarts()
        for outage in 0..<20 as Range<Int64> {
            let mayReturn = restarts.fenced(now: at(outage * 60_000))
            #expect(mayReturn)
        }
    }
}
