// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Lifecycle
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
                let pool = pipeline.outcome(outcome, now: now)
                outstanding[number][Int(pool.rawValue)] -= 1
                assert(
                    outstanding[number][Int(pool.rawValue)] >= 0,
                    "a port has an outcome of a push that it was not given")
            }
            isMore = isMore || count == outcomeBatch.count
        }
        return isMore
    }

    /// Hands over what delivery can take: never more than its live capacity, so that what waits,
    /// waits here, where later events still find it.
    mutating func handOver(now: Now) -> Bool {
        guard lifecycle.mayHandOver else { return false }
        var isMore = false
        firstPort = firstPort + 1 < ports.count ? firstPort + 1 : 0
        for pool in 0..<pipeline.poolCount {
            let id = PoolID(rawValue: UInt16(pool))
            for turn in ports.indices {
                // Another thread is first each time, so that all of them have work.
                let number = (firstPort + turn) % ports.count
                let port = ports[number]
                let room = port.capacity(of: id) - outstanding[number][pool]
                guard room > 0 else { continue }
                let wanted = min(room, slotBatch.count)
                let taken = pipeline.takeReady(
                    id, into: UnsafeMutableBufferPointer(rebasing: slotBatch[..<wanted]), now: now)
                assert(taken <= wanted, "more pushes than the port has room for")
                guard taken > 0 else { break }
                port.submit(UnsafeBufferPointer(rebasing: slotBatch[..<taken]))
                outstanding[number][pool] += taken
                isMore = isMore || taken == slotBatch.count
            }
        }
        return isMore
    }
}
