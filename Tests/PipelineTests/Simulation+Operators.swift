// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle
@testable internal import Pipeline

/// What operators do, and how workers follow them.
extension Simulation {
    mutating func operate() throws(SimulationFailure) {
        if !kafka.withheld.isEmpty, operators.chance(5) { try redrive() }
        guard operators.areRestricting, operators.chance(5) else { return }
        operators.command(now: now)
        let record = operators.records.last!
        tell("an operator: \(record.scope), \(record.restriction?.action.description ?? "resume")")
    }

    mutating func readRestriction(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let record = operators.records[worker.restrictionsRead]
        worker.restrictionsRead += 1
        tell("worker \(number) reads that \(record.scope) is restricted or free")
        let problem = withBytes(record.key) { key in
            withBytes(record.value) { worker.pipeline.restrictionRecord(key: key, value: $0) }
        }
        try require(problem == nil, "a restriction was not read: \(problem!)")
        worker.restrictions.read(record)
    }

    /// A turn of the pipeline has made effective what was read.
    mutating func followed(_ began: [Restriction.Action], _ number: Int) {
        let worker = workers[number]!
        worker.restrictions.beginLimits(now: time(of: number))
        for action in began { coverage.note("\(action.word) followed", worker) }
        applyHolds(of: number)
    }

    /// As the planner's loop does it.
    mutating func partitionsChanged(of number: Int) {
        let worker = workers[number]!
        let own = (worker.assignments + worker.deferredAssignments).count { $0 != nil }
        let share =
            Double(own) / Double(kafka.partitions.count + kafka.deferred.partitions.count)
        worker.pipeline.adopt(shareOfLimits: share)
        worker.restrictions.share = share
        applyHolds(of: number)
    }
}
