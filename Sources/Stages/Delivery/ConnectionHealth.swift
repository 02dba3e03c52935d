// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The last answers on one connection, by which it is compared with the others of its pool.
/// Nothing is allocated: a bit for each answer.
package struct ConnectionHealth: BitwiseCopyable, Sendable {
    package enum Failure: Sendable {
        /// A 5xx, or no answer to a request that was sent: it may be the pool's fault too.
        case fault
        /// A 429, or a request that was refused unprocessed. It says nothing of the pool, but a
        /// connection of which nearly all others differ is at fault itself.
        case refusal
    }

    /// The newest answer is the lowest bit; set where the request failed.
    private var failed: UInt32 = 0
    /// The same, of faults alone.
    private var faulty: UInt32 = 0
    private var lastFailedToken: UInt64?
    package private(set) var answers = 0
    package private(set) var answeredAt = MonotonicTime(nanoseconds: 0)
    /// Since when something has been in flight and nothing has been answered.
    package private(set) var quietSince = MonotonicTime(nanoseconds: 0)
    /// Whether pushes go to the others for now.
    package var isAvoided = false

    /// How many answers are remembered.
    package static let window = 32
    private static let faultsMin = 3

    private var isDoubted: Bool

    /// - Parameter isDoubted: whether the connection counts as faulting until it has proven otherwise.
    package init(isDoubted: Bool = false) { self.isDoubted = isDoubted }

    // MARK: Facts

    /// Requests were sent while none was in flight.
    package mutating func woken(at now: MonotonicTime) { quietSince = now }

    /// So many requests were answered, and none of them failed.
    package mutating func succeeded(_ count: Int, at now: MonotonicTime) {
        // A shift by the window or more leaves no bit.
        failed <<= UInt32(truncatingIfNeeded: count)
        faulty <<= UInt32(truncatingIfNeeded: count)
        answers = min(answers &+ count, Self.window)
        answered(at: now)
    }

    /// A request failed.
    /// - Parameter token: a hash of the device token. Until one of another token follows, the
    ///   failures of a token count once: they may be its own.
    package mutating func failed(_ failure: Failure, token: UInt64) {
        guard token != lastFailedToken else { return }
        lastFailedToken = token
        failed = failed << 1 | 1
        faulty = faulty << 1 | (failure == .fault ? 1 : 0)
        answers = min(answers + 1, Self.window)
    }

    /// Something was answered, be it a failure.
    package mutating func answered(at now: MonotonicTime) {
        answeredAt = now
        quietSince = now
    }

    /// What was answered so far counts no more.
    package mutating func forget() { (failed, faulty, answers, isDoubted) = (0, 0, 0, false) }

    // MARK: Judgements

    package var failures: Int { failed.nonzeroBitCount }

    /// Whether at least three of the last eight requests had a fault.
    package var isFaulting: Bool {
        (faulty & 0xFF).nonzeroBitCount >= Self.faultsMin
            || (isDoubted && answers < Self.faultsMin)
    }

    /// Whether the last two requests had a fault.
    package var hasJustFailedTwice: Bool { faulty & 3 == 3 }

    /// The load by which connections are compared when one is chosen: what is in flight, doubled for
    /// each failure among the last eight. A connection that fails fast has little in flight, and
    /// would otherwise draw what the others carry.
    package func load(inFlight: Int) -> Int {
        (inFlight &+ 1) << (failed & 0xFF).nonzeroBitCount
    }
}
