// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `The intake valve` {
    private func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test func `the valve polls while there is room`() {
        var valve = IntakeValve()
        #expect(valve.next(hasRoom: true, isRelaxed: false, now: at(0)) == .poll)
        #expect(valve.next(hasRoom: true, isRelaxed: false, now: at(5000)) == .poll)
    }

    @Test func `the valve only stops polling at first, since a pause discards what was fetched`() {
        var valve = IntakeValve()
        #expect(valve.next(hasRoom: false, isRelaxed: false, now: at(0)) == .hold)
        #expect(valve.next(hasRoom: false, isRelaxed: false, now: at(999)) == .hold)
        #expect(valve.next(hasRoom: true, isRelaxed: false, now: at(1000)) == .poll)
        #expect(!valve.isPaused)
    }

    @Test func `the valve pauses after a second and goes on polling, so as to stay in the group`() {
        var valve = IntakeValve()
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(0))
        #expect(valve.next(hasRoom: false, isRelaxed: false, now: at(1000)) == .pause)
        #expect(valve.isPaused)
        #expect(valve.next(hasRoom: false, isRelaxed: false, now: at(2000)) == .poll)
    }

    @Test func `the valve resumes only when half of the room is free, and once`() {
        var valve = IntakeValve()
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(0))
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(1000))
        #expect(valve.next(hasRoom: true, isRelaxed: false, now: at(1100)) == .poll)
        #expect(valve.next(hasRoom: true, isRelaxed: true, now: at(1200)) == .resume)
        #expect(valve.next(hasRoom: true, isRelaxed: true, now: at(1300)) == .poll)
    }

    @Test func `the valve stays shut while there is no room, however few pushes are left`() {
        var valve = IntakeValve()
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(0))
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(1000))
        #expect(valve.next(hasRoom: false, isRelaxed: true, now: at(1100)) == .poll)
        #expect(valve.isPaused)
    }

    @Test func `the valve knows nothing of a pause once the partitions are new`() {
        var valve = IntakeValve()
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(0))
        _ = valve.next(hasRoom: false, isRelaxed: false, now: at(1000))
        valve.reset()
        #expect(valve.next(hasRoom: true, isRelaxed: true, now: at(1100)) == .poll)
    }
}
