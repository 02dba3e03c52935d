// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Lifecycle
internal import Pipeline
internal import PushModel

extension PlannerLoop {
    /// Collects the outcomes from all ports. Returns whether more may be waiting.
    mutating func collectOutcomes(now: Now) -> Bool {
        var isMore = false
        for (number, port) in ports.enumerated() {
            let count = port.collect(into: outcomeBatch)
            for index in 0..<count {
                let outcome = outcomeBatch[index]
                if case .answered = outcome.kind {
                    roundTrips.add(
                        nanoseconds: now.monotonic.nanoseconds - outcome.sentAt.nanoseconds)
                }
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

    /// Hands pushes over to delivery, never more than its current capacity: pushes that wait stay
    /// here, where later events can still join them. Returns whether more may be ready.
    mutating func handOver(now: Now) -> Bool {
        guard lifecycle.mayHandOver else { return false }
        var isMore = false
        firstPort = firstPort + 1 < ports.count ? firstPort + 1 : 0
        for pool in 0..<pipeline.poolCount {
            let id = PoolID(rawValue: UInt16(pool))
            for turn in ports.indices {
                // Each time another thread is served first, so that all of them get work.
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
