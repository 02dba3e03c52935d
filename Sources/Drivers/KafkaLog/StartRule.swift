// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Where a group begins that has never committed on a topic.
package enum StartFrom: Hashable, Sendable {
    case earliest
    case latest
    /// At the first record not older than this.
    case ago(Duration)
}

/// What decides where reading of one partition begins.
struct StartEvidence: Hashable {
    /// Nil: the group has none for this partition.
    var committed: Int64?
    /// The oldest offset in the log.
    var low: Int64
    /// One after the newest, asked for *before* `atTime`.
    var high: Int64
    /// Whether no partition of the topic has a commit of the group.
    var isNewTopic: Bool
    /// The first offset at or after `startFrom`'s time, nil when no record is that young.
    var atTime: Int64?
}

enum StartRule {
    struct Decision: Hashable {
        var offset: Int64
        /// Why, when it is not the committed offset that is used.
        var loss: OffsetLoss.Cause?
        /// The position is new to the group and is committed before anything is read.
        var commits: Bool
        var reason = StartReason.beginning
        /// Offsets of the log before this one that the group has never read.
        var skipped: Int64 = 0
    }

    static func decide(_ evidence: StartEvidence, startFrom: StartFrom) -> Decision {
        if let committed = evidence.committed {
            return decide(committed: committed, evidence)
        }
        guard evidence.isNewTopic else {
            // A partition that was added to the topic: all of its events are owed.
            return Decision(offset: evidence.low, commits: true)
        }
        switch startFrom {
        case .earliest:
            return configured(evidence.low, evidence)
        case .latest:
            return configured(evidence.high, evidence)
        case .ago:
            // No record is that young: what comes from now on is. `high` was read first, so a
            // record that arrives between the two questions is not skipped.
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
            // Behind the end: whether the log lost its tail or the topic was made anew cannot be
            // told from here. Its beginning is the one choice that skips nothing in either case.
            return Decision(offset: evidence.low, loss: .truncation, commits: true)
        }
        return Decision(offset: committed, commits: false, reason: .committed)
    }
}
