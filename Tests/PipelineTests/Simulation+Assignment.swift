// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Lifecycle
internal import PushModel

@testable internal import Pipeline

/// The group: how partitions are assigned and taken away.
extension Simulation {
    typealias Place = SimulatedConsumer.Place

    mutating func start(_ number: Int) throws(SimulationFailure) {
        let now = time(of: number)
        let worker = SimulationWorker(
            partitions: kafka.partitions.count, configured: configured, dice: &dice, now: now)
        workers[number] = worker
        lives += 1
        worker.life = lives
        tell("worker \(number) starts with \(worker.settings.slots) slots")
        let isCompacted = chance(50)
        let registrations = kafka.registrations
        let suppressions = kafka.suppressions
        let begun = try beginWithSnapshot(number)
        let replay =
            isCompacted
            ? SimulatedKafka.compacted(
                registrations, from: begun.registrations, end: registrations.count)
                + SimulatedKafka.compacted(
                    suppressions, from: begun.suppressions, end: suppressions.count)
            : Array(suppressions.dropFirst(begun.suppressions))
                + registrations.dropFirst(begun.registrations)
        for record in replay { try worker.apply(record, world: kafka, now: now) }
        worker.registrationsRead = registrations.count
        worker.suppressionsRead = suppressions.count
        if snapshotDice.next(below: 4) == 0 { keepIndex(number) }
        // The index is complete only then, and a turn follows before the first event is read.
        while worker.restrictionsRead < operators.records.count { try readRestriction(number) }
        if worker.restrictionsRead > 0 { try timers(number) }
        try perform(worker.lifecycle.indexCompleted(), number)
    }

    // MARK: Giving

    /// Assigns free partitions to some member of the group.
    mutating func assignFree() throws(SimulationFailure) {
        let free = kafka.free
        guard !free.isEmpty else { return }
        let members = workers.indices.filter { workers[$0]?.consumer.isFenced == false }
        guard !members.isEmpty else { return }
        var shares: [Int: [Place]] = [:]
        for place in free { shares[members[below(members.count)], default: []].append(place) }
        for number in members { try assign(shares[number] ?? [], to: number) }
    }

    mutating func assign(_ places: [Place], to number: Int) throws(SimulationFailure) {
        guard !places.isEmpty else { return }
        let worker = workers[number]!
        coverage.note("assigned", worker)
        var events: [AssignmentID] = []
        var deferred: [AssignmentID] = []
        for place in places {
            switch place {
            case .events(let index): events.append(assign(events: index, to: number))
            case .deferred(let index): deferred.append(assign(deferred: index, to: number))
            }
        }
        partitionsChanged(of: number)
        try perform(worker.lifecycle.assigned(events: events, deferred: deferred), number)
    }

    private mutating func assign(events index: Int, to number: Int) -> AssignmentID {
        let worker = workers[number]!
        kafka.partitions[index].begin()
        kafka.partitions[index].owner = number
        let partition = kafka.partitions[index]
        let id = worker.consumer.assign(.events(index), ordinal: index)
        worker.pipeline.assigned(
            id, topic: partition.topic, partition: partition.number,
            startOffset: partition.stored, note: partition.note?.note)
        worker.holds.assigned(id, topic: Int(partition.topic))
        worker.assignments[index] = id
        worker.inherited[index] = partition.note
        worker.positions[index] = partition.stored
        worker.committableOffsets[index] = partition.stored
        let note = partition.note?.text ?? "-"
        tell("worker \(number) is assigned \(index) from \(partition.stored), \(note)")
        return id
    }

    private mutating func assign(deferred index: Int, to number: Int) -> AssignmentID {
        let worker = workers[number]!
        kafka.deferred.partitions[index].owner = number
        let id = worker.consumer.assign(
            .deferred(index), ordinal: kafka.partitions.count + index)
        worker.pipeline.deferredAssigned(id, partition: Int32(index))
        worker.deferredAssignments[index] = id
        worker.deferredPositions[index] = 0
        worker.deferredEnds[index] = kafka.deferred.partitions[index].end
        worker.readings[index] = SimulatedReading()
        let deferred = kafka.deferred
        worker.payloadOrder.forgetReadings { deferred.partition(of: $0) == index }
        tell("worker \(number) is assigned deferred \(index)")
        return id
    }

    // MARK: Taking

    /// The worker is told that these are not its own any more.
    mutating func unassign(_ ids: [AssignmentID], from number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        tell("worker \(number) gives up \(ids)")
        for id in ids {
            if let index = worker.assignments.firstIndex(of: id) {
                worker.pipeline.unassigned([id])
                worker.holds.unassigned(id)
                worker.assignments[index] = nil
                worker.model.unassigned(partition: index)
            } else if let index = worker.deferredAssignments.firstIndex(of: id) {
                try worker.withTime(world: kafka, now: time(of: number)) {
                    worker.pipeline.unassigned([id])
                }
                worker.deferredAssignments[index] = nil
                worker.deferredEnds[index] = nil
            } else {
                throw SimulationFailure(text: "\(id) is given up, and is not its own")
            }
        }
        partitionsChanged(of: number)
    }

    /// Makes a partition free.
    mutating func release(_ place: Place) {
        switch place {
        case .events(let index): kafka.partitions[index].owner = nil
        case .deferred(let index): kafka.deferred.partitions[index].owner = nil
        }
    }

    /// The group wants partitions back, and waits for the answer: one of events or of `deferred`, or
    /// all, as an eager member is asked.
    mutating func revoke(_ number: Int, deferred: Bool) throws(SimulationFailure) {
        let worker = workers[number]!
        guard worker.consumer.revoke == nil, !worker.consumer.isFenced else { return }
        let all = chance(20)
        let some = worker.consumer.rows.filter { $0.place.isDeferred == deferred }
        guard let one = some.randomElement(using: &dice) else { return }
        let ids = all ? worker.consumer.rows.map(\.id) : [one.id]
        coverage.note(deferred ? "deferred revoked" : "revoked", worker)
        tell("the group wants \(ids) back from worker \(number)")
        worker.consumer.beginRevoke(ids, now: now.monotonic)
        worker.lifecycle.revoking(ids, now: time(of: number))
        // Some go on among whatever else happens.
        guard chance(70) else { return }
        for _ in 0..<below(20) where worker.consumer.revoke != nil && workers[number] === worker {
            try liveOn(number)
        }
    }

    /// A partition goes to somebody else without notice; in the middle of a revoke all of them. Now and
    /// then a part of the log is gone before it is read again: its beginning, or, after the election of
    /// a leader that lagged behind, its end.
    mutating func lose(_ number: Int, deferred: Bool) throws(SimulationFailure) {
        let worker = workers[number]!
        let some = worker.consumer.rows.filter { $0.place.isDeferred == deferred }
        guard let one = some.randomElement(using: &dice) else { return }
        coverage.note(deferred ? "deferred lost" : "lost", worker)
        let ids = worker.consumer.revoke == nil ? [one.id] : worker.consumer.rows.map(\.id)
        for row in worker.consumer.lose(ids) { release(row.place) }
        try perform(worker.lifecycle.lost(ids), number)
        if case .events(let index) = one.place {
            if chance(30) {
                coverage.note("start deleted", worker)
                kafka.deleteStart(of: index, 1 + below(4))
            } else if chance(50) {
                truncate(index, of: number)
            }
        }
        try assignFree()
    }

    private mutating func truncate(_ index: Int, of number: Int) {
        guard !kafka.partitions[index].records.isEmpty else { return }
        coverage.note("end truncated", workers[number]!)
        let count = 1 + below(6)
        kafka.truncateEnd(of: index, count)
        let end = kafka.partitions[index].end
        tell("\(index) ends at \(end)")
    }

    // MARK: Processes

    /// The worker is killed: Kafka may still get some of what was on its way.
    mutating func crash(_ number: Int) throws(SimulationFailure) {
        coverage.note("crash", workers[number]!)
        tell("worker \(number) is killed")
        try replace(number)
    }

    /// Another process takes the worker's place.
    mutating func replace(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        for (record, _) in worker.produced where chance(50) {
            keep(record, of: worker, owing: [])
        }
        workers[number] = nil
        coverage.lived(worker)
        if chance(20) { clocks.replace(number, dice: &dice) }
        for row in worker.consumer.rows { release(row.place) }
        try start(number)
        try assignFree()
    }

    mutating func compactDeferred() {
        for index in kafka.deferred.partitions.indices {
            let partition = kafka.deferred.partitions[index]
            guard let owner = partition.owner, let worker = workers[owner],
                worker.deferredEnds[index] == nil,
                worker.pipeline.state.outbox.tickets.deferrals == 0,
                worker.pipeline.load.forgotten == 0,
                partition.records.allSatisfy({ $0.offset < worker.deferredPositions[index] })
            else { continue }
            kafka.deferred.compact(index)
            coverage.note("compacted", worker)
        }
    }
}

extension SimulatedConsumer.Place {
    var isDeferred: Bool { if case .deferred = self { true } else { false } }
}

extension SimulatedKafka {
    /// Partitions that no member of the group has.
    var free: [SimulatedConsumer.Place] {
        partitions.indices.filter { partitions[$0].owner == nil }.map { .events($0) }
            + deferred.partitions.indices.filter { deferred.partitions[$0].owner == nil }
            .map { .deferred($0) }
    }
}
