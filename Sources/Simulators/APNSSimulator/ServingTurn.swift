// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import PushModel

/// What the connections of one thread share: the settings that commands change, the counts of the
/// current turn of the loop, and random numbers.
final class ServingTurn {
    /// Seconds since 1970, read once per turn of the loop, which is precise enough for the age of a
    /// token.
    var wallSeconds: Int64 = 0
    /// Monotonic nanoseconds, read once per turn of the loop.
    var now: Int64 = 0
    var counts = SimulatorCounts()

    /// Whether requests are read but not answered.
    var isStalled = false
    /// Whether nothing is read and nothing is written.
    var isBlackHole = false
    /// The nanoseconds without a request after which the next one is refused; 0 for no limit.
    var idleMax: Int64 = 0
    var streamLimit: Int
    var delay: AnswerDelay
    private var streamsToRefuse = 0
    private var random = SplitMix64(seed: .random(in: .min ... .max))
    private let counters: SimulatorCounters

    init(options: SimulatorOptions, counters: SimulatorCounters = SimulatorCounters()) {
        self.counters = counters
        streamLimit = options.streamLimit
        delay = options.delay
    }

    /// Adds the turn's counts to those of all threads. Whoever has read an answer finds it counted, so
    /// this comes before answers are written.
    func publishCounts() {
        counters.add(counts)
        counts = SimulatorCounts()
    }

    func refuseStreams(_ count: Int) { streamsToRefuse = max(0, count) }

    func mayOpenStream() -> Bool {
        guard streamsToRefuse > 0 else { return true }
        streamsToRefuse -= 1
        return false
    }

    /// The delay of the next answer, in nanoseconds.
    func nextDelay() -> Int64 {
        switch delay {
        case .fixed(let delay): return delay.nanoseconds
        case .uniform(let range):
            let width = Double((range.upperBound - range.lowerBound).nanoseconds)
            return range.lowerBound.nanoseconds + Int64(random.nextFraction() * width)
        case .exponential(let mean, let cap):
            // This is the inverse of the distribution function; the fraction is never 1.
            let drawn = -log(1 - random.nextFraction()) * Double(mean.nanoseconds)
            return Int64(min(drawn, Double(cap.nanoseconds)))
        }
    }

    /// A random UUID (version 4) as 36 bytes of text.
    func newUUID() -> [UInt8] {
        let high = random.next() & ~0xF000 | 0x4000
        let low = random.next() & ~(0b11 << 62) | 0b10 << 62
        return [UInt8](unsafeUninitializedCapacity: APNSID.textBytes) { buffer, count in
            guard let start = buffer.baseAddress else { return }
            APNSID(high: high, low: low).write(to: start)
            count = APNSID.textBytes
        }
    }
}
