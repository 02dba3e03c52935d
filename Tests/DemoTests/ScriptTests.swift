// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import Demo

@Suite struct `Demo script` {
    @Test(arguments: [5, 10, 40, 600])
    func `kills three workers and does everything else within the duration`(seconds: Int) {
        var script = DisturbanceScript(duration: .seconds(seconds))
        var done: [Disturbance] = []
        for tick in 0...(seconds * 20) { done += script.due(at: .milliseconds(tick * 50)) }
        #expect(done.filter { $0 == .killWorker }.count == 3)
        for trouble in [Disturbance.stall, .goAwayStorm, .serverErrors] {
            #expect(done.filter { $0 == trouble }.count == 1)
        }
        #expect(done.filter { $0 == .flipDoor }.count >= seconds / 2)
    }

    @Test func `hands out each once, in order, also when it was not asked for long`() {
        var patient = DisturbanceScript(duration: .seconds(40))
        let all = patient.due(at: .seconds(40))
        #expect(patient.due(at: .seconds(80)).isEmpty)
        var eager = DisturbanceScript(duration: .seconds(40))
        #expect((0...800).flatMap { eager.due(at: .milliseconds($0 * 50)) } == all)
    }

    @Test func `does nothing before its time`() {
        var script = DisturbanceScript(duration: .seconds(40))
        #expect(script.due(at: .milliseconds(499)).isEmpty)
        #expect(script.due(at: .milliseconds(500)) == [.flipDoor])
        #expect(!script.due(at: .milliseconds(5999)).contains(.killWorker))
        #expect(script.due(at: .seconds(6)).contains(.killWorker))
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

    @Test func `each key is one disturbance`() {
        #expect(Set(Disturbance.allCases.map(\.key)) == ["d", "k", "g", "s", "5"])
    }
}
