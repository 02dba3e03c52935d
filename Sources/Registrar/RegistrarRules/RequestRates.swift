// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How many requests each name may make: so many at once, and then so many a second. A replica counts
/// for itself.
package struct RequestRates {
    private var usedUntil: [String: MonotonicTime] = [:]
    private let interval: Duration
    private let burst: Int
    private let namesMax: Int

    /// - Parameter namesMax: how many names are remembered. Where there are more, those are forgotten
    ///   that have all of their share again, and if none has, all.
    package init(perSecond: Int, burst: Int, namesMax: Int = 100_000) {
        precondition(perSecond > 0 && burst > 0, "a rate and its burst are above 0")
        interval = .seconds(1) / perSecond
        self.burst = burst
        self.namesMax = namesMax
    }

    package var remembered: Int { usedUntil.count }

    /// Takes so many of the name's requests.
    /// - Returns: how long to wait before the next try; nil if these were allowed.
    package mutating func take(_ count: Int = 1, of name: String, now: MonotonicTime) -> Duration? {
        let until = max(usedUntil[name] ?? now, now) + interval * count
        let wait = until - now - interval * max(burst, count)
        if wait > .zero { return wait }
        if usedUntil.count >= namesMax, usedUntil[name] == nil {
            usedUntil = usedUntil.filter { $0.value > now }
            if usedUntil.count >= namesMax { usedUntil.removeAll() }
        }
        usedUntil[name] = until
        return nil
    }
}
