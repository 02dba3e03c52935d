// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `The wait of a start for the restrictions` {
    private static func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    /// What the wait says of looks, in order.
    private static func answers(
        _ wait: inout RestrictionsWait, _ looks: [(others: Bool, restrictions: Bool, at: Int64)]
    ) -> [Bool] {
        looks.map { look in
            wait.mayBegin(
                hasOthers: look.others, hasRestrictions: look.restrictions, now: at(look.at))
        }
    }

    @Test func `waits a minute for the restrictions, counted from when nothing else is missing`() {
        var wait = RestrictionsWait()
        let early = Self.answers(
            &wait,
            [(false, false, 0), (false, false, 500), (true, false, 501), (true, false, 560)])
        #expect(early == [false, false, false, false] && !wait.isGivenUp)
        let late = Self.answers(&wait, [(true, false, 561)])
        #expect(late == [true] && wait.isGivenUp)
        let read = Self.answers(&wait, [(true, true, 700)])
        #expect(read == [true] && !wait.isGivenUp, "they are read at last")
    }

    @Test func `does not begin without the registrations, whatever is read of the restrictions`() {
        var wait = RestrictionsWait()
        let said = Self.answers(
            &wait, [(false, true, 0), (false, true, 1000), (true, true, 1000)])
        #expect(said == [false, false, true])
    }
}
