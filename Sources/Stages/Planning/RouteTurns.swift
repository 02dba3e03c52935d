// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The queues of one line and urgency that have a push, the next to be served first.
struct RouteTurns {
    private(set) var queues: [UInt32] = []
    private var position = 0

    mutating func join(_ queue: UInt32) { queues.append(queue) }

    /// Returns the queue whose turn it is and passes the turn on; nil when all are blocked.
    @inline(__always)
    mutating func next(isBlocked: (UInt32) -> Bool) -> UInt32? {
        // Nearly always one app has pushes of this urgency.
        guard queues.count == 1 else { return nextOfSeveral(isBlocked: isBlocked) }
        return isBlocked(queues[0]) ? nil : queues[0]
    }

    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    private mutating func nextOfSeveral(isBlocked: (UInt32) -> Bool) -> UInt32? {
        for _ in 0..<queues.count {
            let queue = queues[position]
            pass(to: position + 1)
            if !isBlocked(queue) { return queue }
        }
        return nil
    }

    mutating func leave(_ queue: UInt32) {
        let index = queues.firstIndex(of: queue)!
        queues.remove(at: index)
        pass(to: position - (index < position ? 1 : 0))
    }

    /// Wraps at once: a queue that joins at the end comes after those that wait already.
    private mutating func pass(to next: Int) { position = next < queues.count ? next : 0 }
}

/// Which urgencies of one line have something queued, by their rank, and which is served next: the
/// most urgent, but of each `floor` pushes one that is less urgent, so that nothing starves.
struct UrgencyTurns: BitwiseCopyable {
    /// A bit for each rank that has something queued.
    private(set) var waiting: UInt8 = 0
    /// How many pushes have gone since the last less urgent one, while such waited.
    private var passed: UInt8 = 0
    /// The rank that was served last for the floor.
    private var lastOfFloor = 0

    /// A tenth of the pushes is for those that are less urgent.
    static let floor: UInt8 = 10

    mutating func join(_ rank: Int) { waiting |= 1 << rank }
    mutating func leave(_ rank: Int) { waiting &= ~(1 << rank) }
    func has(_ rank: Int) -> Bool { waiting & 1 << rank != 0 }

    /// The ranks in the order in which they are to be served now.
    var begun: Order {
        Order(waiting: waiting, last: lastOfFloor, isForFloor: passed >= Self.floor - 1)
    }

    /// A push of the rank that the order gave last was served.
    mutating func served(by order: Order) {
        if order.isForFloor {
            passed = 0
            lastOfFloor = order.rank
        } else if waiting >> order.rank > 1 {
            passed = min(passed + 1, Self.floor)
        }
    }

    /// The less urgent in turns, if a push of theirs is due, then all by urgency.
    struct Order {
        private let waiting: UInt8
        private(set) var rank: Int
        private(set) var isForFloor: Bool
        /// The ranks that are left of this part of the order.
        private var left: Int

        private static var ranks: Int { 3 }

        fileprivate init(waiting: UInt8, last: Int, isForFloor: Bool) {
            self.waiting = waiting
            self.isForFloor = isForFloor
            rank = isForFloor ? last : Self.ranks - 1
            left = Self.ranks
        }

        mutating func next() -> Int? {
            while true {
                if left == 0 {
                    guard isForFloor else { return nil }
                    (isForFloor, rank, left) = (false, Self.ranks - 1, Self.ranks)
                }
                left -= 1
                rank = (rank + 1) % Self.ranks
                let isWaiting = waiting & 1 << rank != 0
                // A less urgent one is one below another that waits.
                if isWaiting, !isForFloor || waiting & (1 << rank - 1) != 0 { return rank }
            }
        }
    }
}
