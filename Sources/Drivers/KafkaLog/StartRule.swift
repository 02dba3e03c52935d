// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Where reading starts in a topic in which the group has committed nothing.
package enum StartFrom: Hashable, Sendable {
    case earliest
    case latest
    /// The first record that is not older than this.
    case ago(Duration)
}

/// The facts that decide where reading of one partition starts.
struct StartEvidence: Hashable {
    /// The group's committed offset; nil if it has none for this partition.
    var committed: Int64?
    /// The oldest offset in the log.
    var low: Int64
    /// The offset after the newest record, requested *before* `atTime`.
    var high: Int64
    /// Whether the group has committed nothing in any partition of the topic.
    var isNewTopic: Bool
    /// The first offset at or after the time of `startFrom`; nil if no record is that young.
    var atTime: Int64?
}

enum StartRule {
    struct Decision: Hashable {
        var offset: Int64
        /// Why the committed offset cannot be used; nil if it can, or if there is none.
        var loss: OffsetLoss.Cause?
        /// Whether the offset is new to the group, and must be committed before anything is read.
        var commits: Bool
        var reason = StartReason.beginning
        /// How many offsets before the start are in the log and were never read by the group.
        var skipped: Int64 = 0
    }

    static func decide(_ evidence: StartEvidence, startFrom: StartFrom) -> Decision {
        if let committed = evidence.committed {
            return decide(committed: committed, evidence)
        }
        guard evidence.isNewTopic else {
            // The partition was added to the topic, so all its events must be read.
            return Decision(offset: evidence.low, commits: true)
        }
        switch startFrom {
        case .earliest:
            return configured(evidence.low, evidence)
        case .latest:
            return configured(evidence.high, evidence)
        case .ago:
            // If no record is that young, reading starts at the end. `high` was requested first, so
            // a record that arrives between the two requests is not skipped.
            return configured(evidence.atTime ?? evidence.high, evidence)
        }
    }

    private static func configured(_ offset: Int64, _ evidence: StartEvidence) -> Decision {
        Decision(
            offset: offset, commits: true, reason: .startFrom,
            skipped: max(0, offset - evidence.low))
    }

    private static func decide(committed: Int64, _ evidence: StartEvidence) -> Decision {
        if committed < evidence.low {
            return Decision(offset: evidence.low, loss: .retention, commits: true)
        }
        if committed > evidence.high {
            // The committed offset is beyond the end: the log lost its tail, or the topic was
            // recreated. Only the beginning skips nothing in both cases.
            return Decision(offset: evidence.low, loss: .truncation, commits: true)
        }
        return Decision(offset: committed, commits: false, reason: .committed)
    }
}
