// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Remembers, in steps of `resolution`, up to which offset an assignment had been read at what
/// time. That is enough to say which offsets were read at least `registrationGrace` ago, in memory
/// that does not depend on the rate.
struct GraceWindow {
    private var marks: [Mark] = []
    /// All offsets below had been read at least `registrationGrace` ago when last asked.
    private var pastGrace: Int64
    /// The offset after the last one read; those below it may not be under a mark yet.
    private var latest: Int64

    private struct Mark {
        /// All offsets below `nextOffset` had been read by then.
        var time: MonotonicTime
        var nextOffset: Int64
    }

    /// The shortest time between two marks in nanoseconds: 40 marks for the default 2 s.
    private static let resolution: Int64 = 50_000_000

    init(startOffset: Int64) {
        pastGrace = startOffset
        latest = startOffset
    }

    /// When the oldest record within its grace period was read, or up to `resolution` later; nil if
    /// there is none, or it was read just now.
    var oldestReadAt: MonotonicTime? { marks.first?.time }

    mutating func received(nextOffset: Int64, now: MonotonicTime) {
        mark(now: now)
        latest = nextOffset
    }

    /// The offset below which everything was read at least `registrationGrace` before `now`.
    mutating func offsetPastGrace(now: MonotonicTime, registrationGrace: Duration) -> Int64 {
        if registrationGrace == .zero {
            // Nothing waits, and marks would be kept for ever.
            marks.removeAll(keepingCapacity: true)
            pastGrace = latest
            return latest
        }
        mark(now: now)
        var passed = 0
        while passed < marks.count, marks[passed].time + registrationGrace <= now {
            pastGrace = marks[passed].nextOffset
            passed += 1
        }
        if passed > 0 { marks.removeFirst(passed) }
        return pastGrace
    }

    /// Marks what was read so far with the present time, so that no offset is past its grace period
    /// too early.
    private mutating func mark(now: MonotonicTime) {
        guard latest > (marks.last?.nextOffset ?? pastGrace) else { return }
        if let last = marks.last, now.nanoseconds &- last.time.nanoseconds < Self.resolution {
            return
        }
        marks.append(Mark(time: now, nextOffset: latest))
    }
}
