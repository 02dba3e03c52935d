// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Remembers, in steps of `resolution`, how far an assignment had been read when: enough to say which
/// offsets were read at least `registrationGrace` ago, in memory that does not depend on the rate.
struct GraceWindow {
    private var marks: [Mark] = []
    /// All offsets below had been read at least `registrationGrace` ago when last asked.
    private var pastGrace: Int64
    /// Read but not under a mark yet.
    private var latest: Int64

    private struct Mark {
        /// All offsets below `nextOffset` had been read by then.
        var time: MonotonicTime
        var nextOffset: Int64
    }

    /// In nanoseconds; 40 marks for the default 2 s.
    private static let resolution: Int64 = 50_000_000

    /// The longest time from reading a record until `offsetPastGrace` has passed its offset, where
    /// that is called all the time. Marks are `resolution` apart, so the last one may be set that
    /// long after its record was read.
    static func graceEndsWithin(_ registrationGrace: Duration) -> Duration {
        registrationGrace == .zero ? .zero : registrationGrace + .nanoseconds(resolution)
    }

    init(startOffset: Int64) {
        pastGrace = startOffset
        latest = startOffset
    }

    mutating func received(nextOffset: Int64, now: MonotonicTime) {
        mark(now: now)
        latest = nextOffset
    }

    /// Everything below was read at least `registrationGrace` before `now`.
    mutating func offsetPastGrace(now: MonotonicTime, registrationGrace: Duration) -> Int64 {
        mark(now: now)
        if registrationGrace == .zero { return latest }
        var passed = 0
        while passed < marks.count, marks[passed].time + registrationGrace <= now {
            pastGrace = marks[passed].nextOffset
            passed += 1
        }
        if passed > 0 { marks.removeFirst(passed) }
        return pastGrace
    }

    /// What was read before now gets a mark with the present time: never too early.
    private mutating func mark(now: MonotonicTime) {
        guard latest > (marks.last?.nextOffset ?? pastGrace) else { return }
        if let last = marks.last, now.nanoseconds &- last.time.nanoseconds < Self.resolution {
            return
        }
        marks.append(Mark(time: now, nextOffset: latest))
    }
}
