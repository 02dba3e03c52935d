// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Demo script` {
    @Test(arguments: [5, 10, 40, 600])
    func `the demo script kills three workers and does everything else within the duration`(
        seconds: Int
    ) {
        var script = DisturbanceScript(duration: .seconds(seconds))
        var done: [Disturbance] = []
        for tick in 0...(seconds * 20) {
            done += script.due(at: .milliseconds(tick * 50), isWorking: true)
        }
        #expect(done.filter { $0 == .killWorker }.count == 3)
        for trouble in [Disturbance.killRegistrar, .stall, .goAwayStorm, .serverErrors] {
            #expect(done.filter { $0 == trouble }.count == 1)
        }
        #expect(done.filter { $0 == .flipDoor }.count >= seconds / 2)
    }

    @Test func `the demo script hands out each trouble once, and one at a time after a gap`() {
        var script = DisturbanceScript(duration: .seconds(40))
        let late = script.due(at: .seconds(40), isWorking: true)
        #expect(late.filter { $0 == .flipDoor }.count == 20)
        #expect(late.filter { $0 != .flipDoor } == [.killWorker])
        #expect(script.due(at: .seconds(40), isWorking: true).isEmpty)
        // 34 s late, as all that follows: the registrar's end was due at 10 s.
        #expect(script.due(at: .milliseconds(43_999), isWorking: true).isEmpty)
        #expect(script.due(at: .seconds(44), isWorking: true) == [.killRegistrar])
    }

    @Test func `the demo script awaits the first kill of a worker and of the registrar, no other`()
    {
        var script = DisturbanceScript(duration: .seconds(40))
        var awaits = [script.awaitsFirstKills]
        // The fleet works again only long after the end.
        for seconds in [60, 90, 120] {
            _ = script.due(at: .seconds(seconds), isWorking: true)
            awaits.append(script.awaitsFirstKills)
        }
        #expect(awaits == [true, true, false, false])
    }

    @Test func `a trouble waits for a fleet that works, and flips do not`() {
        var script = DisturbanceScript(duration: .seconds(40))
        let waiting = script.due(at: .seconds(10), isWorking: false)
        #expect(!waiting.isEmpty && Set(waiting) == [.flipDoor])
        #expect(script.due(at: .milliseconds(10_100), isWorking: true) == [.killWorker])
    }

    @Test func `the demo script does nothing before its time`() {
        var script = DisturbanceScript(duration: .seconds(40))
        #expect(script.due(at: .milliseconds(499), isWorking: true).isEmpty)
        #expect(script.due(at: .milliseconds(500), isWorking: true) == [.flipDoor])
        #expect(!script.due(at: .milliseconds(5999), isWorking: true).contains(.killWorker))
        #expect(script.due(at: .seconds(6), isWorking: true).contains(.killWorker))
    }

    @Test func `a stall ends by itself`() {
        var schedule = CommandSchedule()
        let start = ContinuousClock.now
        schedule.add(.stall, now: start)
        #expect(schedule.due(now: start) == ["stall on"])
        #expect(schedule.due(now: start + .milliseconds(1999)).isEmpty)
        #expect(schedule.due(now: start + .seconds(2)) == ["stall off"])
        #expect(schedule.due(now: start + .seconds(9)).isEmpty)
    }

    @Test func `each key of the demo is one disturbance`() {
        #expect(Set(Disturbance.allCases.map(\.key)) == ["d", "k", "r", "g", "s", "5"])
    }
}
