// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `The schedule of turns` {
    @Test func `offsets are stored soon after something was read, and seldom otherwise`() {
        var schedule = TurnSchedule(now: at(0))
        #expect(!schedule.isCommitDue(at(99)) && schedule.isCommitDue(at(100)))
        schedule.committed(anything: true, at(100))
        #expect(!schedule.isCommitDue(at(199)) && schedule.isCommitDue(at(200)))
        schedule.committed(anything: false, at(200))
        #expect(!schedule.isCommitDue(at(1199)) && schedule.isCommitDue(at(1200)))
        schedule.wasBusy(at(500))
        #expect(!schedule.isCommitDue(at(599)) && schedule.isCommitDue(at(600)))
        // Whoever reads all the time does not put it off.
        schedule.wasBusy(at(590))
        #expect(schedule.isCommitDue(at(600)))
        #expect(schedule.next == at(600).monotonic)
    }

    @Test func `the worker is looked after every five seconds, once`() {
        var schedule = TurnSchedule(now: at(0))
        let due = [4999, 5000, 5001, 9999, 10_000].map { schedule.isWatchDue(at($0)) }
        #expect(due == [false, true, false, false, true])
        schedule.committed(anything: false, at(60_000))
        #expect(schedule.next == at(15_000).monotonic)
    }
}
