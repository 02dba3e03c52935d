// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How many pushes may be handed over now: as many as a rate has earned and nobody has spent.
struct SendingQuota {
    /// Pushes a second; 0 where nothing is earned.
    private(set) var rate: Double
    var left: Int
    private var earnedAt = MonotonicTime(nanoseconds: 0)

    static let unlimited = SendingQuota(rate: 0, left: .max)
    static let none = SendingQuota(rate: 0, left: 0)
    // Their positions among the quotas.
    static let unlimitedRow = 0
    static let noneRow = 1

    private init(rate: Double, left: Int) {
        self.rate = rate
        self.left = left
    }

    /// - Parameter rate: pushes a second, above 0.
    init(rate: Double, now: MonotonicTime) {
        precondition(rate > 0, "a limit's rate is above 0: one of 0 is a pause")
        self.rate = rate
        left = 1
        earnedAt = now
    }

    /// Another rate. What is left of the former one stays.
    mutating func adopt(rate other: Double, now: MonotonicTime) {
        earn(now: now)
        // What is earned of the next push stays that part of it: the time is worth more at a higher rate.
        let part = min((now - earnedAt) / .seconds(1) * rate, 1)
        earnedAt = now - .seconds(part / other)
        rate = other
        left = min(left, most)
    }

    /// Earns what the time since the last call is worth, up to a tenth of a second's.
    mutating func earn(now: MonotonicTime) {
        let earned = (now - earnedAt) / .seconds(1) * rate
        guard earned >= 1 else { return }
        let whole = min(earned.rounded(.down), Double(most))
        left = min(left + Int(whole), most)
        // The rest of a push is earned next time.
        earnedAt = whole < earned.rounded(.down) ? now : earnedAt + .seconds(whole / rate)
    }

    /// When the next push is earned, and no sooner than is worth a turn.
    var nextAt: MonotonicTime { earnedAt + max(.milliseconds(1), .seconds(1 / rate)) }

    private var most: Int { max(1, Int(rate / 10)) }
}
