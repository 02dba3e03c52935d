// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides how many connections a pool wants. A connection carries `streams ÷ round trip` pushes a
/// second, so a pool whose streams are all taken wants another, as long as answers take no longer
/// than the distance explains. Where they take longer, APNs is the limit and more connections would
/// only flood it; where APNs has lowered its stream limit, it asks for less.
package struct PoolSizing: Sendable {
    /// The state of one pool at the end of a turn.
    package struct Load: Sendable {
        /// Pushes that no connection has taken.
        package var waiting: Int
        package var inFlight: Int
        /// Connections past their warm-up, and how many requests they carry together.
        package var serving: Int
        package var streams: Int
        /// Whether no connection would take the next push: each has all the requests, or all the
        /// bytes of requests, that it may have.
        package var isFull: Bool

        package init(waiting: Int, inFlight: Int, serving: Int, streams: Int, isFull: Bool) {
            self.waiting = waiting
            self.inFlight = inFlight
            self.serving = serving
            self.streams = streams
            self.isFull = isFull
        }

        /// Whether the limits of the connections are what holds pushes back.
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
    /// Whether a push was accepted while streams were free: its answer time shows the distance and
    /// not the load.
    private var sawDistance = false

    /// When growth may be tried again.
    private var growAt: MonotonicTime
    /// Since when the pool has had fewer connections than it wants.
    private var shortSince: MonotonicTime?

    /// The longest answer time that distance can explain: no round trip on Earth takes longer.
    private static let distanceMax = Duration.seconds(1)
    private static let windowMin = Duration.milliseconds(200)
    private static let era = Duration.seconds(600)
    /// A connection that cannot be had for this long is no longer wanted.
    private static let patience = Duration.seconds(60)

    /// - Parameter bounds: the fewest and the most connections; the pool begins with the fewest.
    package init(bounds: ClosedRange<Int>, at now: MonotonicTime) {
        self.bounds = bounds
        wanted = bounds.lowerBound
        lastAt = now
        windowAt = now
        eraAt = now
        growAt = now
    }

    // MARK: Facts

    /// A push was accepted this long after it was sent. Reporting a sample is enough. A refusal
    /// must not be reported, since it may be decided before the request has gone all the way.
    package mutating func accepted(after time: Duration) {
        answers += 1
        answerNanoseconds += time.nanoseconds
        shortestAnswer.saw(time)
        if !last.isSaturated { sawDistance = true }
    }

    /// APNs answered `count` pushes with a 5xx, or refused them: it is in trouble.
    package mutating func faulted(_ count: Int) { faults += count }

    /// A turn has ended. Its load lasts until the end of the next one.
    package mutating func turned(_ load: Load, at now: MonotonicTime) {
        assert(now >= lastAt, "turns end in the order of time")
        assert(
            bounds.contains(wanted),
            "the number of connections wanted lies within the pool's bounds")
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
        // A window is at least four answer times long, so about `4 × inFlight` answers came in it.
        // The limit is a tenth of them.
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
        // The peak took at most half of the streams that one connection fewer would have.
        if wanted > bounds.lowerBound, 2 * peak <= mostStreamsEach.value * (wanted - 1) {
            wanted -= 1
        }
        eraAt = now
        peak = 0
        // A pool that was saturated all the time has measured no distance that could replace the
        // old one.
        if sawDistance { shortestAnswer.nextEra() }
        sawDistance = false
        mostStreamsEach.nextEra()
    }

    /// Gives up connections that the server refuses. A pool without pushes has asked for none: it
    /// will have again what it lost meanwhile.
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

    /// - Parameter none: the value before there is any; `choose` prefers every other to it.
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
