// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The topics in which this member has found no commit of the group, and when it may start them.
///
/// All partitions of such a topic start together. A member that found commits for some partitions
/// only would take the others for added ones and read them from the beginning.
struct NewTopics {
    private struct Row {
        let seenAt: MonotonicTime
        /// Since when the opener, the member with partition 0, could have started the topic.
        var openableSince: MonotonicTime
        /// Whether a partition of the topic was unavailable at the last attempt.
        var isIncomplete = false
    }

    /// The topics by name. None is ever removed: the commits that start a topic do not mean that
    /// the group has read it.
    private var rows: [String: Row] = [:]

    /// How long the other members wait for the opener, the member with partition 0.
    static let openerPatience = Duration.seconds(5)
    /// How long a topic waits for an unavailable partition. An election takes seconds; a broker
    /// that is not back after a minute may be away for days, and the other partitions must not wait
    /// for it.
    static let absencePatience = Duration.seconds(60)
    /// How much longer than the opener the other members wait: the opener may see the topic later
    /// than they do, and it retries unavailable partitions at intervals.
    private static let openerLead = openerPatience + StartResolver.partialIntervalMax

    var isEmpty: Bool { rows.isEmpty }

    func contains(_ topic: String) -> Bool { rows[topic] != nil }

    mutating func seen(_ topic: String, at now: MonotonicTime) {
        if rows[topic] == nil { rows[topic] = Row(seenAt: now, openableSince: now) }
    }

    /// Whether this member still waits for the opener to start the topic.
    func isAwaited(_ topic: String, at now: MonotonicTime) -> Bool {
        guard let row = rows[topic] else { return false }
        return now - row.openableSince < Self.openerPatience
    }

    /// Whether this member may start the topic now.
    ///
    /// - Parameter isWhole: whether every partition of the topic can be started.
    mutating func mayBegin(
        _ topic: String, isWhole: Bool, isOpener: Bool, at now: MonotonicTime
    ) -> Bool {
        guard let row = rows[topic] else { return true }
        rows[topic]!.isIncomplete = !isWhole
        if !isWhole {
            let lead = isOpener ? Duration.zero : Self.openerLead
            return now - row.seenAt >= Self.absencePatience + lead
        }
        guard row.isIncomplete, !isOpener else { return true }
        // The opener must first notice that the topic is complete.
        rows[topic]!.openableSince = now
        return false
    }
}
