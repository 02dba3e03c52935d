// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import LinuxIO
internal import Pipeline
internal import PushModel

/// The delivery threads as the planner sees them, and how many pushes each has.
struct DeliveryPorts: ~Copyable {
    let all: [DeliveryPort]
    /// How many pushes each port holds, by port and pool.
    private(set) var outstanding: [[Int]]
    /// The port that was offered pushes first in the last turn.
    private var first = 0
    /// The times from sending a request to taking in its answer.
    private(set) var roundTrips = LatencyHistogram()
    private let slots: UnsafeMutableBufferPointer<PushSlot>
    private let outcomes: UnsafeMutableBufferPointer<PushOutcome>

    private static let batch = 1024

    init(_ ports: [DeliveryPort], pools: Int) {
        precondition(!ports.isEmpty, "a planner has at least one delivery thread")
        all = ports
        outstanding = ports.map { _ in Array(repeating: 0, count: pools) }
        slots = .allocate(capacity: Self.batch)
        outcomes = .allocate(capacity: Self.batch)
    }

    deinit {
        slots.deallocate()
        outcomes.deallocate()
    }

    /// Signalled by all ports.
    var waker: Waker { all[0].plannerWaker }
    var hasOutcomes: Bool { all.contains(where: \.hasOutcomes) }
    var hasEnded: Bool { all.allSatisfy { $0.hasExited && !$0.hasOutcomes } }

    var connectTimes: LatencyHistogram {
        all.reduce(into: LatencyHistogram()) { $0.add($1.counters.connectTimes) }
    }

    func enter(_ phase: DeliveryPort.Phase) {
        for port in all { port.enter(phase) }
    }

    /// Collects the outcomes from all ports.
    /// - Returns: whether more may be waiting.
    mutating func collect(
        _ pipeline: inout PushPipeline, _ shadow: inout Shadow?, now: Now
    ) -> Bool {
        var isMore = false
        for (number, port) in all.enumerated() {
            let count = port.collect(into: outcomes)
            let batch = UnsafeBufferPointer(rebasing: outcomes[..<count])
            // Before the pipeline forgets the pushes.
            if shadow != nil { shadow!.note(batch, pipeline, now: now) }
            if pipeline.notesEnds { pipeline.noteAcceptances(batch) }
            for index in 0..<count {
                let outcome = outcomes[index]
                if case .answered = outcome.kind {
                    roundTrips.add(
                        nanoseconds: now.monotonic.nanoseconds - outcome.sentAt.nanoseconds)
                }
                let pool = pipeline.outcome(outcome, now: now)
                outstanding[number][Int(pool.rawValue)] -= 1
                assert(
                    outstanding[number][Int(pool.rawValue)] >= 0,
                    "a port has at most one outcome for each push that it was given")
            }
            isMore = isMore || count == outcomes.count
        }
        return isMore
    }

    /// Hands pushes over to delivery, never more than it has room for: pushes that wait stay in the
    /// pipeline, where later events can still join them.
    /// - Returns: whether more may be ready.
    mutating func handOver(_ pipeline: inout PushPipeline, now: Now) -> Bool {
        var isMore = false
        first = first + 1 < all.count ? first + 1 : 0
        for pool in 0..<pipeline.poolCount {
            let id = PoolID(rawValue: UInt16(pool))
            for turn in all.indices {
                // Each time another thread is served first, so that all of them get work.
                let number = (first + turn) % all.count
                let port = all[number]
                let room = PoolRoom(
                    capacity: port.capacity(of: id), held: outstanding[number][pool])
                let handed = pipeline.handOver(id, room, by: slots, now: now) {
                    port.submit($0, isPatient: $1)
                }
                assert(
                    handed.count <= room.free,
                    "a port is handed no more pushes than it has room for")
                outstanding[number][pool] += handed.count
                isMore = isMore || handed.isMore
                guard pipeline.mayHandOverMore(of: id) else { break }
            }
        }
        return isMore
    }
}
