// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import RecordFormats

/// What has failed for good, for the log: one sample for each reason, and how many more there were.
package struct FailureSample: Sendable, Equatable {
    package var reason: String
    /// How many pushes or unreadable records had this reason, the sample included.
    package var count: Int
    package var status: UInt16?
    package var message: String?
    package var app: String?
    /// Where the event of the sample stands.
    package var source: DeadLetter.Source
    package var eventID: String?
    package var traceparent: String?
    /// Whether no push was made, since the record cannot be read.
    package var isUnreadable: Bool

    /// Whether the event is sound, and waits for an operator.
    package var isWithheld: Bool { reason == UnreadableCode.fanOutTooLarge.rawValue }
}

/// Gathers `FailureSample`s from dead letters, so that a flood of failures costs a few lines.
struct FailureSamples {
    private var samples: [String: FailureSample] = [:]

    /// The most reasons that are told apart: APNs names them, and might name ever new ones.
    private static let reasonsMax = 32

    mutating func note(_ letter: DeadLetter) {
        var reason = letter.reason
        if samples[reason] == nil, samples.count >= Self.reasonsMax {
            reason = DeadLetter.OwnReason.several.rawValue
        }
        let count = max(1, letter.failures ?? letter.targets.count)
        guard samples[reason] == nil else { return samples[reason]!.count += count }
        samples[reason] = FailureSample(
            reason: reason, count: count, status: letter.status, message: letter.message,
            app: letter.app, source: letter.source, eventID: letter.correlation.id,
            traceparent: letter.correlation.traceparent,
            isUnreadable: Self.isUnreadable(letter))
    }

    /// A letter of many failures names no targets, whatever has failed.
    private static func isUnreadable(_ letter: DeadLetter) -> Bool {
        UnreadableCode(rawValue: letter.reason) != nil
            || letter.targets.isEmpty && letter.failures == nil
    }

    /// Returns the samples since the last call, by reason.
    mutating func take() -> [FailureSample] {
        defer { samples = [:] }
        return samples.values.sorted { $0.reason < $1.reason }
    }
}
