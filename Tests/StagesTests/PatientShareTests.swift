// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Testing

@Suite struct `The share of patient pushes` {
    /// Lets one push go after another while both kinds wait.
    private func play(_ count: Int, _ share: inout PatientShare) -> [Bool] {
        (0..<count).map { _ in
            let isPatient = share.owed > 0
            if isPatient {
                share.patientWent(1)
            } else {
                share.promptWent(1, isWaitedFor: true)
            }
            return isPatient
        }
    }

    @Test func `of ten pushes that go while patient ones wait, the tenth is patient`() {
        var share = PatientShare()
        for (turn, isPatient) in play(100, &share).enumerated() {
            #expect(isPatient == (turn % 10 == 9), "push \(turn)")
        }
    }

    @Test func `what prompt pushes go in one batch is made up for by the next`() {
        var share = PatientShare()
        share.promptWent(90, isWaitedFor: true)
        #expect(share.owed == 10)
        share.patientWent(4)
        #expect(share.owed == 6)
        share.patientWent(100)
        #expect(share.owed == 0)
        #expect(play(9, &share) == Array(repeating: false, count: 9), "nothing is saved up")
    }

    @Test func `nothing is owed for what goes while no patient push waits`() {
        var share = PatientShare()
        share.promptWent(1000, isWaitedFor: false)
        #expect(share.owed == 0)
        share.promptWent(8, isWaitedFor: true)
        share.promptWent(1, isWaitedFor: false)
        share.promptWent(8, isWaitedFor: true)
        #expect(share.owed == 0)
    }

    @Test func `what is owed is bounded, however long patient pushes cannot go`() {
        var share = PatientShare()
        for _ in 0..<1000 { share.promptWent(1000, isWaitedFor: true) }
        #expect(share.owed == PatientShare.owedMax)
    }

    @Test func `a sixteenth is kept for prompt pushes, and of very little nothing`() {
        #expect([0, 3, 4, 31, 32, 1000].map { PatientShare.kept(of: $0) } == [0, 0, 1, 1, 2, 62])
    }

    @Test func `patient pushes go first where they are owed, and last otherwise`() {
        #expect(SendingPart.allCases.map(\.isPatient) == [true, false, true])
        #expect(SendingPart.allCases.map(\.isKeptBack) == [false, false, true])
    }
}
