// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Testing

/// Whether the run's last event was owed to tokens whose registrations changed around it.
@Suite struct `An accepted push` {
    typealias Run = RecordedRun

    @Test(arguments: [-2991, -1011, -1010, 990, 2990])
    func `an accepted push may be owed where the registration came within the grace period`(
        time: Int64
    )
        throws
    {
        let report = try Run.cutShort {
            $0.events = [Run.event(Run.lastEvent, offset: 99)]
            $0.answers = []
            $0.registrations = [Run.registration(at: time)]
        }
        // 2 s before and after 990.
        let isSure = time <= -1010
        #expect(report.lost == (isSure ? 2 : 0))
        #expect(report.ambiguous == (isSure ? 0 : 2))
    }

    @Test func `an accepted push is not owed where the registration came later`() throws {
        let report = try Run.cutShort {
            $0.registrations = [Run.registration(at: 60_000)]
        }
        #expect(report.obligations == 0)
        #expect(report.ambiguous == 0)
    }

    /// A registration taken back at this time, and how the two pairs that it made are judged.
    struct Withdrawal {
        var time: Int64
        var withdrawn = 0
        var ambiguous = 0
        var lost = 0
    }

    @Test(arguments: [
        Withdrawal(time: -5000),
        Withdrawal(time: -500, ambiguous: 2),
        Withdrawal(time: 1500, ambiguous: 2),
        Withdrawal(time: 10_000, withdrawn: 2),
        Withdrawal(time: 40_000, lost: 2),
    ])
    func `an accepted push is not owed where the registration was taken back in time`(
        withdrawal: Withdrawal
    ) throws {
        let report = try Run.cutShort {
            $0.events = [Run.event(Run.lastEvent, offset: 99)]
            $0.answers = []
            $0.registrations.append(Run.registration(at: withdrawal.time, showing: nil))
        }
        #expect(report.withdrawn == withdrawal.withdrawn)
        #expect(report.ambiguous == withdrawal.ambiguous)
        #expect(report.lost == withdrawal.lost)
        let late = report.lines.filter { $0.hasSuffix("whose registration ended 39 s after it") }
        #expect(late.count == withdrawal.lost)
    }

    @Test func `an accepted push is still owed where the registration is only repeated`() throws {
        let report = try Run.cutShort {
            $0.registrations.append(Run.registration(at: 989, showing: [1, 0]))
        }
        #expect(report.lost == 1)
        #expect(report.ambiguous == 0)
    }

    @Test func `an accepted push is not owed where a later snapshot left the token out`() throws {
        let report = try Run.cutShort {
            $0.events = [Run.event(Run.lastEvent, offset: 99)]
            $0.registrations.append(Run.registration(at: -5000, showing: [0]))
        }
        #expect(report.obligations == 1)
        #expect(report.lost == 0)
        #expect(report.ambiguous == 0)
    }

    @Test func `an accepted push is owed until every registration of the token is taken back`()
        throws
    {
        let report = try Run.cutShort {
            $0.registrations += [
                Run.registration(at: -3_000_000, showing: [1], handler: "More"),
                Run.registration(at: 10_000, showing: nil),
                Run.registration(at: 40_000, showing: nil, handler: "More"),
            ]
        }
        #expect(report.lost == 1)
        #expect(report.withdrawn == 0)
    }

    @Test func `an accepted push is still owed while a second registration shows the token`() throws
    {
        let report = try Run.cutShort {
            $0.registrations.append(
                Run.registration(at: -3_000_000, showing: [1], handler: "More"))
            $0.registrations.append(Run.registration(at: 989, showing: nil))
        }
        #expect(report.lost == 1)
    }
}
