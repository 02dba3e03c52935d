// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The topics that one member has seen without a commit of the group, and when it may begin them.
///
/// Such a topic is begun whole. A partition that is left out would be taken for an added one by
/// whoever finds the commits of the others, and be read from its beginning.
struct NewTopics {
    private struct Row {
        let seenAt: MonotonicTime
        /// Since when the opener could have begun the topic.
        var openableSince: MonotonicTime
        /// One of its partitions was away at the last look.
        var isIncomplete = false
    }

    /// None is ever taken out: commits of ours do not make a topic one that the group had read.
    private var rows: [String: Row] = [:]

    /// How long the others wait for the member that opens a topic.
    static let openerPatience = Duration.seconds(5)
    /// How long a topic waits for a partition that is away. An election takes seconds; a broker that
    /// is not back after a minute may be away for days, and the rest of the topic is owed meanwhile.
    static let absencePatience = Duration.seconds(60)
    /// By so much the opener is ahead of the others: it may see the topic later than they, and looks
    /// for what is away at intervals.
    private static let openerLead = openerPatience + StartResolver.partialIntervalMax

    var isEmpty: Bool { rows.isEmpty }

    func contains(_ topic: String) -> Bool { rows[topic] != nil }

    mutating func seen(_ topic: String, at now: MonotonicTime) {
        if rows[topic] == nil { rows[topic] = Row(seenAt: now, openableSince: now) }
    }

    /// Whether it is still the opener's turn.
    func isAwaited(_ topic: String, at now: MonotonicTime) -> Bool {
        guard let row = rows[topic] else { return false }
        return now - row.openableSince < Self.openerPatience
    }

    /// - Parameter isWhole: every partition of it can be begun.
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
        // The opener has to find out first.
        rows[topic]!.openableSince = now
        return false
    }
}
