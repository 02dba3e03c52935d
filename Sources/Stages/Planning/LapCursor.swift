// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A position in the list of tokens that show one subject, while the list changes underneath. It
/// goes downwards and wraps around. Removal is swap-remove and additions append, so a change can
/// make it meet a token twice, never skip one: the owner hands it each entry that a removal moved
/// behind its back.
///
/// A *lap* meets every entry that was in the list when the lap began. A lap that is asked for while
/// one is running begins at the present position, so both share the way; any further one asked for
/// until the first ends replaces the second. A subject that changes all the time thus costs one
/// endless fan-out, and no event waits longer than two laps.
///
/// A lap may be of several *passes* through the list, each of which is for other tokens. A lap that is
/// asked for on the way then begins with the next pass: what a removal moves during one pass is handed
/// over for that pass alone.
package struct LapCursor: Equatable, Sendable {
    /// The entry met last; those below it are next.
    private var position: Int
    private var current: Goal
    private var next: Goal?
    private let passes: Int
    /// How many passes have begun before this one, of this lap and of those before.
    package private(set) var pass: Int

    /// A lap ends when the cursor stands at `index` with no wrap-arounds left.
    private struct Goal: Equatable, Sendable {
        var index: Int
        var wraps: Int
    }

    package enum Step: Equatable, Sendable {
        /// These entries are next, the last of them first.
        case visit(Range<Int>)
        /// The first lap is done; the one asked for later goes on.
        case lapEnded
        case finished
    }

    /// - Parameter first: the pass of the first lap to begin with.
    package init(count: Int, passes: Int = 1, first: Int = 0) {
        precondition(first < passes, "the first pass lies below the number of passes")
        position = count
        current = Goal(index: 0, wraps: passes - 1 - first)
        self.passes = passes
        pass = first
    }

    package var isExtended: Bool { next != nil }

    /// Whether the lap that is under way has met everything.
    package func isAtEnd(count: Int) -> Bool {
        current.wraps == 0 && min(position, count) <= current.index
            || current.wraps > 0 && count == 0
    }

    /// A later event wants a whole lap from here.
    package mutating func extend() {
        next = passes == 1 ? Goal(index: position, wraps: 1) : Goal(index: 0, wraps: passes)
    }

    /// - Parameters:
    ///   - count: the list's present length.
    ///   - most: entries that may be visited, at least 1.
    package mutating func step(count: Int, most: Int) -> Step {
        position = min(position, count)
        while true {
            if current.wraps == 0, position <= current.index { return endLap() }
            if position > 0 { break }
            if count == 0 { return endLap() }
            wrap(to: count)
        }
        let end = position
        position = max(end - most, current.wraps == 0 ? current.index : 0)
        return .visit(position..<end)
    }

    private mutating func endLap() -> Step {
        guard let following = next else { return .finished }
        current = following
        next = nil
        return .lapEnded
    }

    private mutating func wrap(to count: Int) {
        position = count
        pass += 1
        current.wraps -= 1
        next?.wraps -= 1
    }
}
