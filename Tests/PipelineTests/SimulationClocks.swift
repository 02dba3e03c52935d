// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// The wall clocks of a simulation: no two machines agree, and some are set while they run.
/// Monotonic time is right everywhere, so bounds and pauses must be exact whatever the wall clocks
/// do.
struct SimulatedClocks {
    /// By worker: how far its machine's clock is ahead of the true time.
    private(set) var ahead: [Duration]
    private var areRight = false

    init(workers: Int, dice: inout SplitMix64) {
        ahead = (0..<workers).map { _ in Self.error(&dice) }
    }

    /// How far somebody has set back each worker's clock, all in all: by so much may a time that it wrote
    /// down before differ from the same time as it is now.
    private(set) var setBack: [Int: Duration] = [:]

    /// Makes all clocks right, for good.
    mutating func agree() {
        areRight = true
        ahead = ahead.map { _ in .zero }
    }

    /// What both clocks of this worker show.
    func now(of worker: Int, _ now: Now) -> Now {
        Now(monotonic: now.monotonic, wall: now.wall + ahead[worker])
    }

    /// Somebody sets the clock, forward or back.
    mutating func step(_ worker: Int, dice: inout SplitMix64) -> Duration {
        let step = areRight ? .zero : Self.within(5000, &dice)
        ahead[worker] += step
        if step < .zero { setBack[worker, default: .zero] -= step }
        return step
    }

    /// The worker runs on another machine from here on.
    mutating func replace(_ worker: Int, dice: inout SplitMix64) {
        if !areRight { ahead[worker] = Self.error(&dice) }
    }

    /// How far some machine's clock is off: mostly little, now and then half a minute.
    static func error(_ dice: inout SplitMix64) -> Duration {
        switch dice.next(below: 100) {
        case 0..<70: within(50, &dice)
        case 70..<95: within(5000, &dice)
        default: within(30_000, &dice)
        }
    }

    private static func within(_ milliseconds: Int64, _ dice: inout SplitMix64) -> Duration {
        .milliseconds(Int64(dice.next(below: UInt64(2 * milliseconds + 1))) - milliseconds)
    }
}
