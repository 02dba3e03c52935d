// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How prompt and patient pushes of a pool share what is free. Prompt pushes, which somebody waits for,
/// go first, and find something free: patient ones, those of large audiences, of `deferred` and of
/// background urgency, leave a part of it. So that these never starve, of ten pushes that go while some
/// of them wait, one is patient. The planner keeps to it when it hands pushes over, and a delivery
/// thread when it sends them. It counts what has gone; pushes that end unsent cost nobody a turn.
package struct PatientShare: BitwiseCopyable, Sendable {
    /// How many prompt pushes have gone since patient ones wait, without those that a patient one has
    /// made up for.
    private var passed = 0

    /// As many prompt pushes go for each patient one, as of each urgency for each less urgent one.
    package static let promptForEach = 9
    /// The most patient pushes that go in a row because they have waited: their route may be paused
    /// for hours, and what went then is not made up for. It is more than a batch of the planner owes.
    package static let owedMax = 128

    package init() {}

    /// How many patient pushes go before the next prompt one, and use what is kept from them.
    package var owed: Int { passed / Self.promptForEach }

    /// - Parameter isWaitedFor: whether patient pushes wait meanwhile.
    package mutating func promptWent(_ count: Int, isWaitedFor: Bool) {
        assert(count >= 0, "the number of pushes is at least 0")
        passed = isWaitedFor ? min(passed + count, Self.owedMax * Self.promptForEach) : 0
    }

    package mutating func patientWent(_ count: Int) {
        assert(count >= 0, "the number of pushes is at least 0")
        passed = max(0, passed - count * Self.promptForEach)
    }

    /// How much of `limit` patient pushes leave free: a sixteenth, and of less than four nothing. Where
    /// answers come in bursts, a round trip after the requests, it is all that there is for a prompt
    /// push until the next burst.
    package static func kept(of limit: Int) -> Int { limit < 4 ? 0 : max(1, limit / 16) }
}

/// The order in which a pool's pushes go: what patient pushes are owed, then all prompt ones, then
/// patient ones as far as they leave free what is kept from them.
package enum SendingPart: CaseIterable, Sendable {
    case owed, prompt, patient

    package var isPatient: Bool { self != .prompt }
    /// Whether this part leaves free what is kept from patient pushes.
    package var isKeptBack: Bool { self == .patient }
}
