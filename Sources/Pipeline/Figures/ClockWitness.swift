// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What the times of Kafka's records say of this worker's wall clock.
///
/// No record is read before it is written. So the true time is at least that of the newest record
/// and what has passed since it was read, as far as those who write to Kafka know it: backends, and
/// for registrations the brokers. What has expired by this worker's clock and not by theirs may
/// still be owed, since this clock may be ahead.
///
/// Suppressions, dead letters and the records of `deferred` have the times of workers, perhaps of
/// this one, so they are no witness.
struct ClockWitness {
    /// The highest difference of a record's time and the monotonic time at which it was read; in
    /// milliseconds, like the next one.
    private var ofRecords = Int64.min
    /// The highest difference of this worker's clocks since it has had rows.
    private var own = Int64.min

    /// A difference that machines with synchronised clocks do not have.
    private static let stepMin: Int64 = 5000

    /// A record that another program has written was read. Times below 1 are none.
    @inline(__always)
    mutating func read(_ writtenAt: WallTime, now: Now) {
        guard writtenAt.milliseconds > 0 else { return }
        ofRecords = max(ofRecords, Self.difference(writtenAt, now))
    }

    /// Notes this worker's clock. To be called whenever it has converted times.
    mutating func look(now: Now) { own = max(own, Self.difference(now.wall, now)) }

    /// How far this worker's clock is ahead of the newest record; nil if none was read.
    func lead(now: Now) -> Duration? {
        ofRecords == .min
            ? nil : .milliseconds(max(0, Self.difference(now.wall, now) &- ofRecords))
    }

    /// When what expires then by this worker's clock has expired by the records' times too. Where no
    /// record was read nothing contradicts the clock.
    func confirms(_ expiresAt: MonotonicTime) -> MonotonicTime {
        guard ofRecords > .min, own > ofRecords else { return expiresAt }
        return expiresAt + .milliseconds(own &- ofRecords)
    }

    /// Whether somebody has set the clock back: what was converted before has times that are too early.
    func isSetBack(now: Now) -> Bool {
        own > .min && own &- Self.difference(now.wall, now) > Self.stepMin
    }

    /// Nothing that was converted is left.
    mutating func beginAnew() { own = .min }

    private static func difference(_ wall: WallTime, _ now: Now) -> Int64 {
        wall.milliseconds &- now.monotonic.nanoseconds / 1_000_000
    }
}
