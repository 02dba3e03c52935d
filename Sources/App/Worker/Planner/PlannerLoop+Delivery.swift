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

    /// Hands pushes over to delivery, never more than it has room for: pushes that wait stay here,
    /// where later events can still join them. Returns whether more may be ready.
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
                let held = outstanding[number][pool]
                let room = PoolRoom(capacity: port.capacity(of: id), held: held)
                let handed = pipeline.handOver(id, room, by: slotBatch, now: now) {
                    port.submit($0, isPatient: $1)
                }
                assert(handed.count <= room.free, "more than there is room")
                outstanding[number][pool] += handed.count
                isMore = isMore || handed.isMore
                guard pipeline.mayHandOverMore(of: id) else { break }
            }
        }
        return isMore
    }
}
