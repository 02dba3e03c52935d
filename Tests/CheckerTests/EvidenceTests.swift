// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Testing

/// The run's last event has no accepted push to token 1: what is taken as its end, and what not.
@Suite struct `The evidence of an end without an accepted push` {
    typealias Run = RecordedRun

    // MARK: Accepted pushes

    @Test func `an end without a push is not a push from before the event`() throws {
        let report = try Run.cutShort {
            $0.answers.append(Run.answer(Run.lastEvent - 1, 1, id: 900))
        }
        #expect(report.lost == 1)
    }

    @Test func `an end without a push is not a push at the very time of the event`() throws {
        #expect(
            try Run.cutShort { $0.answers.append(Run.answer(Run.lastEvent, 1, id: 900)) }.lost == 1)
        #expect(
            try Run.cutShort { $0.answers.append(Run.answer(Run.lastEvent + 1, 1, id: 900)) }.lost
                == 0)
    }

    @Test func `an end is not a push to the token under another topic or environment`() throws {
        let report = try Run.cutShort {
            $0.answers.append(Run.answer(1000, 1, id: 900, topic: Run.app))
            $0.answers.append(Run.answer(1000, 1, id: 901, environment: "development"))
        }
        #expect(report.lost == 1)
        #expect(report.strayAnswers == 2)
    }

    @Test func `an end without a push is not a push that APNs refused`() throws {
        let report = try Run.cutShort {
            $0.answers.append(Run.answer(1000, 1, id: 900, status: 503, reason: "Shutdown"))
        }
        #expect(report.lost == 1)
    }

    // MARK: Dead letters

    @Test func `an end is a dead letter of the event and the token, with its refusal`() throws {
        let report = try Run.cutShort {
            $0.deadLetters = [Run.deadLetter(offset: 99, tokens: [0, 1])]
            $0.answers.append(Run.answer(995, 1, id: 900, status: 400, reason: "PayloadEmpty"))
        }
        #expect(report.lost == 0)
        #expect(report.deadLettered == 1)
    }

    @Test(arguments: [
        // A refusal that no answer shows, a word that no worker writes, and a record that can be read.
        Run.deadLetter(offset: 99, tokens: [1]),
        Run.deadLetter(offset: 99, tokens: [1], status: nil, reason: "expired"),
        Run.deadLetter(offset: 99, tokens: [], attempts: 0, status: nil, reason: "invalidJSON"),
    ])
    func `an end without a push is not a forged dead letter`(letter: String) throws {
        let report = try Run.cutShort { $0.deadLetters = [letter] }
        #expect(report.lost == 1 && report.deadLettered == 0)
    }

    @Test func `an end without a push is a dead letter of attempts that nobody answered`() throws {
        let letter = { (offset: Int64) in
            Run.deadLetter(
                offset: offset, tokens: [1], attempts: 10, status: nil,
                reason: "AttemptsExhausted")
        }
        #expect(try Run.cutShort { $0.deadLetters = [letter(99)] }.deadLettered == 1)
        #expect(try Run.cutShort { $0.deadLetters = [letter(98)] }.lost == 1)
    }

    @Test func `an end without a push is not a dead letter for another token, or of another event`()
        throws
    {
        let other = try Run.cutShort { $0.deadLetters = [Run.deadLetter(offset: 99, tokens: [0])] }
        #expect(other.lost == 1)
        let older = try Run.cutShort { $0.deadLetters = [Run.deadLetter(offset: 98, tokens: [1])] }
        #expect(older.lost == 1)
    }

    @Test func `an end is the dead letter of an older event whose push was refused after this one`()
        throws
    {
        let report = try Run.cutShort {
            $0.deadLetters = [Run.deadLetter(offset: 98, tokens: [1], at: 996)]
            $0.answers.append(Run.answer(995, 1, id: 900, status: 400, reason: "PayloadEmpty"))
        }
        #expect(report.deadLettered == 1)
        #expect(report.lost == 0)
    }

    @Test(arguments: [
        // Refused before the event; for another reason; after the letter was written.
        Run.answer(989, 1, id: 900, status: 400, reason: "PayloadEmpty"),
        Run.answer(995, 1, id: 900, status: 400, reason: "BadPriority"),
        Run.answer(999, 1, id: 900, status: 400, reason: "PayloadEmpty"),
    ])
    func `an end is not the dead letter of an older event without its refusal`(answer: String)
        throws
    {
        let report = try Run.cutShort {
            $0.deadLetters = [Run.deadLetter(offset: 98, tokens: [1], at: 996)]
            $0.answers.append(answer)
        }
        #expect(report.lost == 1)
    }

    @Test func `an end without a push is not a dead letter that lost its tokens`() throws {
        let report = try Run.cutShort { $0.deadLetters = [Run.deadLetter(offset: 99, tokens: [])] }
        #expect(report.lost == 1)
    }

    // MARK: Dead tokens

    private static func gone(_ time: Int64) -> String {
        Run.answer(time, 1, id: 900, status: 410, reason: "Unregistered")
    }

    @Test func `an end without a push is a 410 after the event, or before it`() throws {
        for time in [Run.lastEvent - 1, Run.lastEvent + 1] {
            let report = try Run.cutShort { $0.answers.append(Self.gone(time)) }
            #expect(report.lost == 0)
            #expect(report.suppressed == 1)
        }
    }

    @Test func `an end without a push is not a 410 before a later registration`() throws {
        let report = try Run.cutShort {
            $0.registrations = [
                Run.registration(at: -3_600_000), Run.registration(at: -1_800_000),
            ]
            $0.answers.append(Self.gone(-1_800_001))
        }
        #expect(report.lost == 1)
    }

    @Test func `an end without a push is not a 410 of another token`() throws {
        let report = try Run.cutShort {
            $0.answers.append(
                Run.answer(1000, 0, id: 900, status: 410, reason: "Unregistered"))
        }
        #expect(report.lost == 1)
    }

    @Test
    func `an end is not a 410 before the event that led to no known suppression`()
        throws
    {
        let none = try Run.cutShort {
            $0.answers.append(Self.gone(980))
            $0.suppressions = []
        }
        #expect(none.lost == 1)
        let suppression = try Run.cutShort {
            $0.answers.append(Self.gone(980))
            $0.suppressions = [Run.suppression(at: 981, token: 1)]
        }
        #expect(suppression.suppressed == 1)
        let older = try Run.cutShort {
            $0.answers.append(Self.gone(980))
            $0.suppressions = [Run.suppression(at: 981, registeredAt: -3_600_001, token: 1)]
        }
        #expect(older.lost == 1)
    }

    @Test func `an end without a push is not a suppression that no refusal led to`() throws {
        let report = try Run.cutShort {
            $0.suppressions = [Run.suppression(at: 981, token: 1)]
        }
        #expect(report.lost == 1)
    }

    /// A refusal and suppressions that do not belong together.
    struct Mismatch {
        var refusedAt: Int64 = 980
        var suppressions: [String]
    }

    @Test(arguments: [
        // Revoked again; for another refusal; from before the refusal; of a registration that the
        // refusal came before.
        Mismatch(suppressions: [
            Run.suppression(at: 981, token: 1), Run.suppression(at: 985, token: 1, status: nil),
        ]),
        Mismatch(suppressions: [Run.suppression(at: 981, token: 1, status: 400)]),
        Mismatch(suppressions: [Run.suppression(at: 971, token: 1)]),
        Mismatch(refusedAt: -3_600_001, suppressions: [Run.suppression(at: 981, token: 1)]),
        Mismatch(suppressions: [Run.suppression(at: 981, token: 0)]),
    ])
    func `an end without a push is not a suppression that does not fit the refusal`(
        mismatch: Mismatch
    ) throws {
        let report = try Run.cutShort {
            $0.answers.append(Self.gone(mismatch.refusedAt))
            $0.suppressions = mismatch.suppressions
        }
        #expect(report.lost == 1)
    }

    @Test func `an end without a push is a suppression on a token that APNs did not know`() throws {
        let report = try Run.cutShort {
            $0.answers.append(Run.answer(980, 1, id: 900, status: 400, reason: "BadDeviceToken"))
            $0.suppressions = [Run.suppression(at: 981, token: 1, status: 400)]
        }
        #expect(report.suppressed == 1)
    }

    // MARK: Expiry

    @Test func `an end without a push is an expiry that has passed, and not one that has not`()
        throws
    {
        // The logs end with the answer at 995.
        let end = (Run.start + 995) * 1_000_000
        for (expiresAt, lost) in [(end, 0), (end + 1, 1)] {
            let report = try Run.cutShort {
                $0.events[99] = Run.event(
                    Run.lastEvent, offset: 99, more: #","expiresAt":\#(expiresAt)"#)
            }
            #expect(report.lost == lost)
            #expect(report.expired == 1 - lost)
        }
    }

    @Test func `an end without a push is the life that pushes have by default, once it is over`()
        throws
    {
        #expect(try Run.cutShort { $0.change = { $0.ttl = .milliseconds(5) } }.expired == 1)
        #expect(try Run.cutShort { $0.change = { $0.ttl = .milliseconds(6) } }.lost == 1)
    }
}
