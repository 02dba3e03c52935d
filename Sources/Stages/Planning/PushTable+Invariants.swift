// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

extension PushTable {
    /// Every claim that a push has, waiting or in flight; for tests and simulation.
    package func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for row in 0..<pushes.count where pushes[row].state != .free {
            claimPool.forEach(in: pushes[row].held.claims, body)
            if pushes[row].hasFollowUp { claimPool.forEach(in: followUp[row].claims, body) }
        }
    }

    /// The pushes that have not ended; for tests and simulation.
    package func forEachPush(_ body: (UInt32) -> Void) {
        for row in 0..<pushes.count where pushes[row].state != .free { body(UInt32(row)) }
    }

    /// The waiting pushes that have held an offset since `time` or longer; for tests and
    /// simulation.
    package func waiting(heldSince time: MonotonicTime) -> [UInt32] {
        (0..<pushes.count).filter { isWaiting($0) && heldSince($0) <= time }.map(UInt32.init)
    }

    package func checkInvariants() {
        var counts: [Push.State: Int] = [:]
        for row in 0..<pushes.count { counts[pushes[row].state, default: 0] += 1 }
        precondition(
            counts[.free, default: 0] == pushes.count - rows.count,
            "the free slots are exactly those not taken")
        precondition(
            counts[.queued, default: 0] == queues.count,
            "the queues have exactly the queued pushes")
        precondition(
            counts[.resting, default: 0] == resting.count,
            "the heap has exactly the resting pushes")
        precondition(
            counts[.inFlight, default: 0] == inFlightCount,
            "the count in flight is that of the pushes in that state")
        var deferredShare = 0
        for row in 0..<pushes.count {
            let push = pushes[row]
            if push.state != .free, push.isOfDeferredShare { deferredShare += 1 }
            guard push.hasFollowUp else { continue }
            precondition(
                push.state == .inFlight || followUp[row].content.notBefore > push.content.notBefore,
                "the follow-up of a waiting push is due later than the push")
            precondition(push.state != .free, "a free slot has no follow-up")
        }
        precondition(
            deferredShare == deferredShareCount
                && deferredShares.reduce(0, +) == deferredShareCount
                && deferredShares.count { $0 > 0 } == poolsWithDeferredShare
                && deferredShares.allSatisfy { $0 >= 0 },
            "the deferred share, in all and by pool, is that of the pushes in use")
        queues.checkInvariants(pushes)
        resting.checkInvariants()
        bodies.checkInvariants()
    }
}
