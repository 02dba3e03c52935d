// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Pipeline

/// Failures of which a letter has said the same shortly before (`deadLetters.repeatAfter`): they are
/// counted, and told together at the end of their period.
struct SimulatedRepeats {
    /// How many failures letters have told of by their number.
    var written = 0
    /// When a failure without a payload was last told of by a letter of its own.
    private var toldAt: [SimulatedToken: [String: MonotonicTime]] = [:]

    mutating func told(_ flight: SimulationModel.Flight, now: Now) {
        guard flight.payload == nil else { return }
        toldAt[flight.token, default: [:]][Self.reason(flight)] = now.monotonic
    }

    /// Whether another letter for this failure may be spared.
    func mayCount(_ flight: SimulationModel.Flight, within period: Duration, now: Now) -> Bool {
        guard flight.payload == nil, let told = toldAt[flight.token]?[Self.reason(flight)] else {
            return false
        }
        return now.monotonic - told < period
    }

    /// What a letter gives as the reason: that of the answer, or that there were too many tries.
    private static func reason(_ flight: SimulationModel.Flight) -> String {
        [.rejected, .badToken].contains(flight.answer) ? flight.answer.rawValue : "attempts"
    }

    /// How many failures a letter stands for; nil for one that has no such number. What a letter
    /// says that was too large for Kafka was counted when it was larger.
    static func count(inLetter text: String) -> Int? {
        guard text.contains("\"repeats\":") else { return nil }
        guard text.contains("\"token\":") else { return 0 }
        return Int(text.text(after: "\"repeats\":").prefix { $0.isNumber })
    }
}

extension SimulationWorker {
    /// The push has failed as one before it. An earlier letter says so, and no offset waits for it.
    /// - Parameter claims: those that the push had.
    func noteRepeat(
        of flight: Flight, claims: [OffsetClaim], isOrphaned: Bool, now: Now
    ) throws(SimulationFailure) {
        try require(
            repeats.mayCount(flight, within: settings.deadLetterRepeatAfter, now: now),
            "a failure is only counted, and no letter says the same: \(flight)")
        if !isOrphaned { model.notTold(flight.token, group: "", holding: holding(claims)) }
    }
}
