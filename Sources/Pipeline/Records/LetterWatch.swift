// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Decides whether reading waits until dead letters have been written. It waits while Kafka takes
/// them fast. A topic of dead letters that is away or slow must not slow down the rest: it counts
/// as stalled until half of the letters' room is free again, and meanwhile nothing waits for it.
struct LetterWatch {
    /// Whether too many letters wait, and go out too slowly for reading to wait for them.
    private(set) var isStalled = false
    /// Set while there is no room for letters.
    private var full: Full?

    /// Since when there has been no room for letters, or when that was last looked at.
    private struct Full {
        var since: MonotonicTime
        /// `TicketTable.letterBytesClosed` at that time.
        var closed: Int
    }

    var isFull: Bool { full != nil }

    /// - Parameters:
    ///   - closed: bytes of letters that have gone out since the start.
    ///   - roomBytes: what letters with their events may take.
    mutating func looked(isFull: Bool, closed: Int, roomBytes: Int, now: MonotonicTime) {
        guard isFull else {
            full = nil
            isStalled = false
            return
        }
        if let full {
            guard now - full.since >= Self.patience else { return }
            isStalled = closed - full.closed < roomBytes / 8
        }
        full = Full(since: now, closed: closed)
    }

    /// The time in which an eighth of the room must become free for letters to count as fast: 4
    /// MiB/s by default. It is less than reading may pause for without leaving its partitions, and
    /// many times what an acknowledgement takes.
    private static let patience = Duration.milliseconds(500)
}
