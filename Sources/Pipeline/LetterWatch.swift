// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Whether dead letters are what reading waits for. Reading waits for letters that go out fast. A topic
/// that is away or slow must not slow down what is none of its business: until half of what it has is
/// gone, nothing waits for it.
struct LetterWatch {
    /// Too many letters wait, and they go out too slowly for reading to wait for them.
    private(set) var isStalled = false
    /// Nil while there is room for letters.
    private var full: Full?

    /// Since when there has been no room for letters, or when that was last looked at.
    private struct Full {
        var since: MonotonicTime
        /// `TicketTable.letterBytesClosed` then.
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

    /// Less than reading may pause for without leaving its partitions; many times what an
    /// acknowledgement takes. With an eighth of the room in that time letters count as fast: 4 MiB/s.
    private static let patience = Duration.milliseconds(500)
}
