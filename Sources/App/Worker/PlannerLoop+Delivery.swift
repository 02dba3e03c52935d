// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Pipeline
internal import PushModel

extension PlannerLoop {
    /// Takes in what delivery has to say.
    mutating func collectOutcomes(now: Now) -> Bool {
        var isMore = false
        for (number, port) in ports.enumerated() {
            let count = port.collect(into: outcomeBatch)
            for index in 0..<count {
                let outcome = outcomeBatch[index]
                let lane = pipeline.routing[port.slab.push(outcome.slot).pointee.lane]
                outstanding[number][Int(lane.pool.rawValue)] -= 1
                pipeline.outcome(outcome, now: now)
            }
            isMore = isMore || count == outcomeBatch.count
        }
        return isMore
    }

    /// Hands over what delivery can take: never more than its live capacity, so that what waits,
    /// waits here, where later events still find it.
    mutating func handOver(now: Now) -> Bool {
        guard stop?.hasAskedDelivery != true else { return false }
        var isMore = false
        for pool in pipeline.routing.pools.indices {
            let id = PoolID(rawValue: UInt16(pool))
            for (number, port) in ports.enumerated() {
                let room = port.capacity(of: id) - outstanding[number][pool]
                guard room > 0 else { continue }
                let wanted = min(room, slotBatch.count)
                let taken = pipeline.takeReady(
                    id, into: UnsafeMutableBufferPointer(rebasing: slotBatch[..<wanted]), now: now)
                guard taken > 0 else { break }
                port.submit(UnsafeBufferPointer(rebasing: slotBatch[..<taken]))
                outstanding[number][pool] += taken
                isMore = isMore || taken == slotBatch.count
            }
        }
        return isMore
    }
}
