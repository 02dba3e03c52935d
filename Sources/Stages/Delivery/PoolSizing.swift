// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How many connections a pool wants. APNs answers `streams ÷ round trip` pushes a second on a
/// connection, so a pool whose streams are all taken, while answers take no longer than the distance
/// does, wants another. Where they take longer, the far side is the limit and more connections would
/// only crowd it; where it has lowered its stream limit it asks for less.
package struct PoolSizing: Sendable {
    /// One pool as it is left at the end of a turn.
    package struct Load: Sendable {
        /// Pushes that no connection has taken.
        package var waiting: Int
        package var inFlight: Int
        /// Connections past their warm-up, and how many requests they carry together.
        package var serving: Int
        package var streams: Int
        /// None of them would take the next push: each has all the requests, or all the bytes of
        /// requests, that it may have.
        package var isFull: Bool

        package init(waiting: Int, inFlight: Int, serving: Int, streams: Int, isFull: Bool) {
            self.waiting = waiting
            self.inFlight = inFlight
            self.serving = serving
            self.streams = streams
            self.isFull = isFull
        }

        /// The limits of the connections are what holds pushes back.
        fileprivate var isSaturated: Bool { waiting > 0 && serving > 0 && isFull }
        fileprivate var streamsEach: Int { serving > 0 ? streams / serving : 0 }
    }

    package private(set) var wanted: Int
    /// The mean answer time that led to the last growth.
    package private(set) var meanAnswer = Duration.zero

    private let bounds: ClosedRange<Int>
    private var last = Load(waiting: 0, inFlight: 0, serving: 0, streams: 0, isFull: false)
    private var lastAt: MonotonicTime

    /// The window: what happened since the pool was last judged.
    private var windowAt: MonotonicTime
    private var saturated = Duration.zero
    private var answers = 0
    private var answerNanoseconds: Int64 = 0
    private var faults = 0

    /// The era: what was seen in this one and the one before.
    private var eraAt: MonotonicTime
    private var shortestAnswer = Extreme(Duration.seconds(1 << 20), choose: min)
    private var mostStreamsEach = Extreme(0, choose: max)
    private var peak = 0
    /// A push was accepted while streams were free: what it took shows the distance, not a crowd.
    private var sawDistance = false

    /// Growth is not tried before.
    private var growAt: MonotonicTime
    /// Since when the pool has had fewer connections than it wants.
    private var shortSince: MonotonicTime?

    /// No way around the Earth and back takes longer.
    private static let distanceMax = Duration.seconds(1)
    private static let windowMin = Duration.milliseconds(200)
    private static let era = Duration.seconds(600)
    /// A connection that cannot be had for so long is given up.
    private static let patience = Duration.seconds(60)

    /// - Parameter bounds: of the number of connections; the lower one to begin with.
    package init(bounds: ClosedRange<Int>, at now: MonotonicTime) {
        self.bounds = bounds
        wanted = bounds.lowerBound
        lastAt = now
        windowAt = now
        eraAt = now
        growAt = now
    }

    // MARK: Facts

    /// A push was accepted so long after it was sent. A sample is enough; a refusal says nothing,
    /// since it may be decided nearer by.
    package mutating func accepted(after time: Duration) {
        answers += 1
        answerNanoseconds += time.nanoseconds
        shortestAnswer.saw(time)
        if !last.isSaturated { sawDistance = true }
    }

    /// So many were answered with a 5xx, or refused: the far side is in trouble.
    package mutating func faulted(_ count: Int) { faults += count }

    /// The end of a turn. What it leaves holds until the next one.
    package mutating func turned(_ load: Load, at now: MonotonicTime) {
        assert(now >= lastAt, "turns go forward")
        assert(bounds.contains(wanted), "a pool has as many connections as it may")
        if last.isSaturated { saturated += now - lastAt }
        last = load
        lastAt = now
        peak = max(peak, load.waiting + load.inFlight)
        if load.serving > 0 { mostStreamsEach.saw(load.streamsEach) }
        noteShortage(load, at: now)
        if now - windowAt >= Self.windowMin, now - windowAt >= meanOfWindow * 4 {
            endWindow(load, at: now)
        }
        if now - eraAt >= Self.era { endEra(at: now) }
    }

    // MARK: Judgement

    private mutating func endWindow(_ load: Load, at now: MonotonicTime) {
        let isSaturated = saturated * 2 >= now - windowAt
        let mean = meanOfWindow
        let isDistance =
            answers > 0 && mean <= shortestAnswer.value * 2 && mean <= Self.distanceMax
        let isThrottled = load.streamsEach < mostStreamsEach.value
        // A window is at least four answers long, so so many came on each stream: a tenth of them.
        let isIll = faults * 10 > load.inFlight * 4
        if isSaturated, isDistance, !isThrottled, !isIll, load.serving >= wanted, now >= growAt,
            wanted < bounds.upperBound
        {
            wanted += 1
            meanAnswer = mean
        }
        windowAt = now
        saturated = .zero
        answers = 0
        answerNanoseconds = 0
        faults = 0
    }

    private mutating func endEra(at now: MonotonicTime) {
        // Half of what one connection fewer would carry was enough.
        if wanted > bounds.lowerBound, 2 * peak <= mostStreamsEach.value * (wanted - 1) {
            wanted -= 1
        }
        eraAt = now
        peak = 0
        // A pool that was crowded all the time has seen no distance to put in the old one's place.
        if sawDistance { shortestAnswer.nextEra() }
        sawDistance = false
        mostStreamsEach.nextEra()
    }

    /// A server may refuse more connections than it has given. A pool without pushes has asked for
    /// none: what it lost meanwhile it will have again.
    private mutating func noteShortage(_ load: Load, at now: MonotonicTime) {
        guard load.waiting + load.inFlight > 0, load.serving < wanted,
            load.serving >= bounds.lowerBound
        else {
            shortSince = nil
            return
        }
        let since = shortSince ?? now
        shortSince = since
        guard now - since >= Self.patience else { return }
        wanted = load.serving
        growAt = now + Self.era
        shortSince = nil
    }

    private var meanOfWindow: Duration {
        answers > 0 ? .nanoseconds(answerNanoseconds / Int64(answers)) : .zero
    }
}

/// The least or the greatest value of this era and the one before, so that what was true long ago
/// is forgotten.
private struct Extreme<Value: Sendable>: Sendable {
    private let choose: @Sendable (Value, Value) -> Value
    private let none: Value
    private var current: Value
    private var previous: Value

    /// - Parameter none: what any value is chosen before.
    init(_ none: Value, choose: @escaping @Sendable (Value, Value) -> Value) {
        self.choose = choose
        self.none = none
        current = none
        previous = none
    }

    var value: Value { choose(current, previous) }

    mutating func saw(_ value: Value) { current = choose(current, value) }

    mutating func nextEra() {
        previous = current
        current = none
    }
}
