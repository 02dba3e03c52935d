// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// Who has which partition, and how it is taken away.
extension Simulation {
    mutating func start(_ number: Int) throws(SimulationFailure) {
        let worker = SimulationWorker(partitions: kafka.partitions.count, dice: &dice)
        workers[number] = worker
        tell("worker \(number) starts with \(worker.settings.slots) slots")
        let isCompacted = chance(50)
        let registrations = kafka.registrations
        let suppressions = kafka.suppressions
        let replay =
            isCompacted
            ? SimulatedKafka.compacted(registrations, end: registrations.count)
                + SimulatedKafka.compacted(suppressions, end: suppressions.count)
            : suppressions + registrations
        let now = time(of: number)
        for record in replay { try worker.apply(record, now: now) }
        worker.registrationsRead = registrations.count
        worker.suppressionsRead = suppressions.count
        for index in kafka.partitions.indices where kafka.partitions[index].owner == nil {
            if index % 2 == number || chance(30) { assign(index, to: number) }
        }
        for index in kafka.deferred.partitions.indices
        where kafka.deferred.partitions[index].owner == nil {
            if index % 2 == number || chance(30) { assignDeferred(index, to: number) }
        }
    }

    mutating func assignDeferred(_ index: Int, to number: Int) {
        let worker = workers[number]!
        kafka.deferred.partitions[index].owner = number
        let assignment = worker.newAssignment(ordinal: kafka.partitions.count + index)
        worker.pipeline.deferredAssigned(assignment, partition: Int32(index))
        worker.deferredAssignments[index] = assignment
        worker.deferredPositions[index] = 0
        worker.deferredEnds[index] = kafka.deferred.partitions[index].end
        worker.readings[index] = SimulatedReading()
        let deferred = kafka.deferred
        worker.payloadOrder.forgetReadings { deferred.partition(of: $0) == index }
        tell("worker \(number) is assigned deferred \(index)")
    }

    mutating func compactDeferred() {
        for index in kafka.deferred.partitions.indices {
            let partition = kafka.deferred.partitions[index]
            guard let owner = partition.owner, let worker = workers[owner],
                worker.deferredEnds[index] == nil, worker.pipeline.outbox.tickets.deferrals == 0,
                partition.records.allSatisfy({ $0.offset < worker.deferredPositions[index] })
            else { continue }
            kafka.deferred.compact(index)
            coverage.note("compacted", worker)
        }
    }

    /// The group wants the partition back: what is under way is still sent, within two seconds.
    mutating func revokeDeferred(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        coverage.note("deferred revoked", worker)
        worker.pipeline.drain = .until(time(of: number).monotonic + .seconds(2))
        for _ in 0..<below(20) {
            pass(.milliseconds(100))
            try turn(number)
            try check()
        }
        worker.pipeline.drain = nil
        try loseDeferred(number)
    }

    /// The partition goes to somebody else, without notice.
    mutating func loseDeferred(_ number: Int) throws(SimulationFailure) {
        let owned = kafka.deferred.partitions.indices.filter {
            kafka.deferred.partitions[$0].owner == number
        }
        guard let index = owned.randomElement(using: &dice) else { return }
        let worker = workers[number]!
        coverage.note("deferred lost", worker)
        tell("worker \(number) gives up deferred \(index)")
        let written = worker.pipeline.records.count
        worker.pipeline.unassigned(worker.deferredAssignments[index]!)
        worker.deferredAssignments[index] = nil
        worker.deferredEnds[index] = nil
        try worker.note(from: written, world: kafka, now: time(of: number))
        assignDeferred(index, to: chance(70) ? 1 - number : number)
    }

    mutating func assign(_ index: Int, to number: Int) {
        let worker = workers[number]!
        kafka.partitions[index].begin()
        kafka.partitions[index].owner = number
        let partition = kafka.partitions[index]
        let assignment = worker.newAssignment(ordinal: index)
        worker.pipeline.assigned(
            assignment, topic: partition.topic, partition: partition.number,
            startOffset: partition.stored)
        worker.assignments[index] = assignment
        worker.positions[index] = partition.stored
        worker.committableOffsets[index] = partition.stored
        tell("worker \(number) is assigned \(index) from \(partition.stored)")
    }

    mutating func unassign(_ index: Int, from number: Int) {
        let worker = workers[number]!
        worker.pipeline.unassigned(worker.assignments[index]!)
        worker.assignments[index] = nil
        worker.model.unassigned(partition: index)
        kafka.partitions[index].owner = nil
        tell("worker \(number) gives up \(index)")
    }

    mutating func owned(by number: Int) -> Int? {
        kafka.partitions.indices.filter { kafka.partitions[$0].owner == number }
            .randomElement(using: &dice)
    }

    /// The group wants a partition back: a drain of at most two seconds, then it is let go.
    mutating func revoke(_ number: Int) throws(SimulationFailure) {
        guard let index = owned(by: number) else { return }
        let worker = workers[number]!
        coverage.note("revoked", worker)
        worker.pipeline.drain = .until(time(of: number).monotonic + .seconds(2))
        for _ in 0..<below(20) {
            pass(.milliseconds(100))
            try flushLetters(number)
            try turn(number)
            try check()
        }
        try storeAtOnce(number)
        worker.pipeline.drain = nil
        unassign(index, from: number)
        assign(index, to: chance(60) ? 1 - number : number)
    }

    /// Without notice; now and then a part of the log is gone before it is read again: its beginning,
    /// or, after the election of a leader that lagged behind, its end.
    mutating func lose(_ number: Int) {
        guard let index = owned(by: number) else { return }
        coverage.note("lost", workers[number]!)
        unassign(index, from: number)
        if chance(30) {
            coverage.note("start deleted", workers[number]!)
            let count = 1 + below(4)
            kafka.deleteStart(of: index, count)
        } else if chance(50) {
            truncate(index, of: number)
        }
        assign(index, to: chance(70) ? 1 - number : number)
    }

    private mutating func truncate(_ index: Int, of number: Int) {
        guard !kafka.partitions[index].records.isEmpty else { return }
        coverage.note("end truncated", workers[number]!)
        let count = 1 + below(6)
        kafka.truncateEnd(of: index, count)
        let end = kafka.partitions[index].end
        tell("\(index) ends at \(end)")
    }

    /// The worker stops as it should: it leaves what waits in `deferred`, drains, stores and goes.
    mutating func stop(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        coverage.note("stopped", worker)
        tell("worker \(number) stops")
        worker.pipeline.drain = .until(time(of: number).monotonic + .seconds(2))
        for _ in 0..<below(20) {
            pass(.milliseconds(100))
            try flushLetters(number)
            try answer(number)
            try acknowledge(number)
            try advance(number, steps: 256)
            try handOver(number)
            try check()
        }
        try storeAtOnce(number)
        try replace(number)
    }

    /// The worker is killed: Kafka may still get some of what was on its way.
    mutating func crash(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        coverage.note("crash", worker)
        try replace(number)
    }

    /// Another process takes the worker's place.
    private mutating func replace(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        tell("worker \(number) is killed")
        for (record, _) in worker.produced where chance(50) { keep(record, owing: []) }
        workers[number] = nil
        if chance(20) { clocks.replace(number, dice: &dice) }
        for index in kafka.partitions.indices where kafka.partitions[index].owner == number {
            kafka.partitions[index].owner = nil
        }
        for index in kafka.deferred.partitions.indices
        where kafka.deferred.partitions[index].owner == number {
            kafka.deferred.partitions[index].owner = nil
        }
        try start(number)
        for index in kafka.partitions.indices where kafka.partitions[index].owner == nil {
            assign(index, to: chance(50) ? 1 - number : number)
        }
        for index in kafka.deferred.partitions.indices
        where kafka.deferred.partitions[index].owner == nil {
            assignDeferred(index, to: chance(50) ? 1 - number : number)
        }
    }
}
