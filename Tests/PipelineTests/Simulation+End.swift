// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Ledger
internal import Lifecycle
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// How a life ends: no more traffic and no more faults.
extension Simulation {
    /// No more traffic and no more faults: everything must come to an end by itself.
    mutating func drain() throws(SimulationFailure) {
        isDraining = true
        for index in kafka.deferred.partitions.indices {
            kafka.deferred.partitions[index].absentUntil = now.monotonic
        }
        operators.liftAll()
        while operators.chance(70), !kafka.withheld.isEmpty { try redrive() }
        tell("the end begins")
        for round in 0..<8000 {
            pass(.milliseconds(100))
            // Clocks are set whenever somebody likes: no bound may depend on them.
            if round < 300, chance(2) { stepClock(below(2)) }
            for number in workers.indices { try turn(number) }
            for worker in workers.compactMap(\.self) { try worker.checkHolds(now: now) }
            if round % 8 == 0 { try check() }
            if isOver { break }
        }
        try check()
        for (index, partition) in kafka.partitions.enumerated() {
            let last = partition.records.last.map { $0.offset + 1 } ?? partition.stored
            try require(
                partition.stored >= last && partition.stored <= partition.end,
                "partition \(index) ends at \(last), and \(partition.stored) is stored; "
                    + "\(workers.map { $0!.pipeline.load })")
        }
        try require(
            kafka.deferred.debts.isEmpty,
            "owed by the deferred topic: \(kafka.deferred.debts.prefix(3))")
        try require(kafka.unread.isEmpty, "never read: \(kafka.unread)")
        for worker in workers.compactMap(\.self) {
            try require(worker.pipeline.isIdle, "something is left: \(worker.pipeline.load)")
            try require(
                worker.pipeline.state.tracker.claimCount == 0,
                "a claim is left: \(worker.pipeline.load), \(kafka.deferred.partitions.map(\.owner))"
            )
            try require(worker.model.debts.isEmpty, "owed: \(worker.model.debts.prefix(3))")
            try require(worker.pipeline.deferral.table.count == 0, "a deferred push is left")
            try require(worker.pipeline.load.forgotten == 0, "forgotten rows are never read again")
            try require(worker.pipeline.state.outbox.repeated.untold == 0, "repeats are never told")
            try require(worker.untold.isEmpty, "rejected without a letter: \(worker.untold)")
            try require(worker.pipeline.state.pushes.bodies.count == 0, "a payload is left")
        }
    }

    var isOver: Bool {
        workers.allSatisfy { worker in
            worker!.pipeline.isIdle && worker!.produced.isEmpty
                && worker!.pipeline.deferral.table.count == 0 && worker!.pipeline.records.isEmpty
                && worker!.pipeline.load.forgotten == 0
                && worker!.pipeline.state.tracker.claimCount == 0
                && worker!.pipeline.state.pushes.bodies.count == 0
                && worker!.pipeline.state.outbox.repeated.untold == 0
                && !worker!.lifecycle.isDraining
        }
            && isDeferredRead
            && kafka.partitions.allSatisfy { partition in
                partition.records.last.map { $0.offset < partition.stored } ?? true
            }
    }

    var isDeferredRead: Bool {
        kafka.deferred.partitions.enumerated().allSatisfy { index, partition in
            guard let owner = partition.owner, let worker = workers[owner] else { return false }
            return worker.deferredEnds[index] == nil
                && partition.records.allSatisfy { $0.offset < worker.deferredPositions[index] }
        }
    }
}
