// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Lifecycle
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What a worker reads, and what its clock brings.
extension Simulation {
    mutating func readTables(_ number: Int, limit: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        var left = min(limit, worker.pipeline.roomForRegistrations)
        while left > 0, worker.restrictionsRead < operators.records.count {
            left -= 1
            try readRestriction(number)
        }
        while left > 0, worker.suppressionsRead < kafka.suppressions.count {
            let record = kafka.suppressions[worker.suppressionsRead]
            worker.suppressionsRead += 1
            left -= 1
            tell("worker \(number) learns of \(String(decoding: record.key, as: UTF8.self))")
            try apply(record, number)
        }
        while left > 0, worker.registrationsRead < kafka.registrations.count {
            let record = kafka.registrations[worker.registrationsRead]
            worker.registrationsRead += 1
            left -= 1
            tell("worker \(number) applies registration \(worker.registrationsRead)")
            if case .unreadable = record.meaning { coverage.note("bad registration", worker) }
            try apply(record, number)
        }
        if !worker.pipeline.late.entries.isEmpty { coverage.note("no slot", worker) }
    }

    mutating func apply(
        _ record: SimulatedTableRecord, _ number: Int
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        let written = worker.pipeline.records.count
        let unsubscribed = worker.pipeline.counters.unsubscribed
        try worker.apply(record, world: kafka, now: now)
        if worker.pipeline.counters.unsubscribed > unsubscribed {
            coverage.note("signed out", worker)
        }
        try worker.note(from: written, world: kafka, now: now)
    }

    mutating func readDeferred(_ number: Int, limit: Int) throws(SimulationFailure) {
        guard try poll(number) != nil else { return }
        let worker = workers[number]!
        let now = time(of: number)
        for index in kafka.deferred.partitions.indices
        where worker.consumer.isRead(.deferred(index))
            && !kafka.deferred.isAbsent(index, now: self.now)
        {
            let partition = kafka.deferred.partitions[index]
            let position = worker.deferredPositions[index]
            for record in partition.records.filter({ $0.offset >= position }).prefix(limit) {
                tell("worker \(number) reads deferred \(index)/\(record.offset)")
                if record.value == nil { coverage.note("tombstone read", worker) }
                let forgotten = worker.pipeline.counters.deferredForgotten
                try worker.read(record, partition: index, world: kafka, now: now)
                if worker.pipeline.counters.deferredForgotten > forgotten {
                    coverage.note("rows forgotten", worker)
                }
            }
            noteForgottenGaps(number)
            let next = partition.records.first { $0.offset >= worker.deferredPositions[index] }
            guard let end = worker.deferredEnds[index], next.map({ $0.offset >= end }) ?? true
            else { continue }
            try perform(
                worker.lifecycle.endReached(worker.deferredAssignments[index]!), number)
        }
    }

    /// Reads again what the worker has asked for, with a consumer of its own.
    mutating func readAgain(_ number: Int, limit: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard let reading = worker.pipeline.deferredReading else { return }
        if reading.number != worker.rereading.number {
            coverage.note("read again", worker)
            tell("worker \(number) reads \(reading.partition) again from \(reading.offset)")
            worker.rereading = (reading.number, reading.offset)
        }
        let partition = kafka.deferred.partitions[Int(reading.partition)]
        let position = worker.rereading.position
        let records = partition.records.filter { $0.offset >= position }
        for record in records.prefix(limit) {
            guard worker.pipeline.deferredReading?.number == reading.number else { break }
            tell("worker \(number) reads \(reading.partition)/\(record.offset) again")
            try worker.readAgain(
                record, partition: Int(reading.partition), world: kafka, now: time(of: number))
        }
        noteForgottenGaps(number)
        if records.count <= limit, worker.pipeline.deferredReading?.number == reading.number {
            let now = time(of: number)
            try worker.withTime(world: kafka, now: now) {
                worker.pipeline.deferredReadAgain(upTo: partition.end, now: now)
            }
        }
    }

    mutating func readEvents(_ number: Int, limit: Int) throws(SimulationFailure) {
        guard let most = try poll(number) else { return }
        let worker = workers[number]!
        let now = time(of: number)
        var left = min(limit, most)
        worker.pipeline.shardBreaker =
            isDraining || !chance(15) ? .closed : chance(50) ? .halfOpen : .open
        let first = below(kafka.partitions.count)
        for place in kafka.partitions.indices {
            let index = (first + place) % kafka.partitions.count
            let partition = kafka.partitions[index]
            guard worker.consumer.isRead(.events(index)) else { continue }
            for record in partition.records where left > 0 {
                guard record.offset >= worker.positions[index] else { continue }
                tell("worker \(number) reads \(index)/\(record.offset)")
                if record.event == nil { coverage.note("unreadable", worker) }
                kafka.unread.remove(record.number)
                if worker.progressInherited(index, record.offset) != nil { coverage.resumed += 1 }
                let before = worker.pipeline.counters
                let fate = try worker.read(record, partition: index, of: partition, now: now)
                if fate == .withheld { coverage.note("withheld", worker) }
                coverage.remembered(before, worker.pipeline.counters)
                if worker.pipeline.counters.eventsSplit > before.eventsSplit {
                    coverage.note("split", worker)
                }
                if fate == .asked, let event = record.event, event.payload != nil {
                    kafka.deferred.read(event, at: worker.payloadsReadAt, now: now)
                }
                left -= 1
            }
        }
    }

    /// What is due by the clock, and by what is given up.
    mutating func timers(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        worker.pipeline.drain = worker.lifecycle.drain
        let began = worker.restrictions.follow(now: now)
        let drops = worker.watchDrops(world: kafka, now: now)
        let fanOuts = worker.watchFanOuts()
        let changes = worker.pipeline.restrictions.changes
        let merged = worker.pipeline.counters.failuresMerged
        let reading = worker.pipeline.deferredReading
        try worker.withTime(world: kafka, now: now) { () throws(SimulationFailure) in
            if worker.lifecycle.isDraining { worker.pipeline.flushDeadLetters(now: now, all: true) }
            try advance(number, now: now)
            try worker.noteDropsByTime(drops, now: now)
            // Where letters have no room, the numbers of repeats are merged; nothing else is by time.
            worker.repeats.written += worker.pipeline.counters.failuresMerged - merged
        }
        if let reading, worker.pipeline.deferredReading != reading,
            worker.pipeline.load.forgotten > 0
        {
            coverage.note("reading given up", worker)
        }
        let areNew = worker.pipeline.restrictions.changes != changes
        if areNew { followed(began, number) }
        for _ in 0..<(try worker.noteDroppedFanOuts(fanOuts, areNew: areNew)) {
            coverage.note("fan-out dropped", worker)
        }
        noteForgottenGaps(number)
        for event in worker.takeBackShards(of: kafka, now: now) {
            coverage.note("shard taken back", worker)
            tell("worker \(number) takes back \(event)")
            if event.payload != nil {
                kafka.deferred.read(event, at: worker.payloadsReadAt, now: now)
            }
        }
    }

    /// In some turns under settings that a reload has lowered just before, and lifts again: what was
    /// decided before them is done under them.
    private mutating func advance(_ number: Int, now: Now) throws(SimulationFailure) {
        let worker = workers[number]!
        let isReloaded = worker.pipeline.state.outbox.hasRefusedShards && !worker.isReloaded
        worker.isReloaded = isReloaded
        guard isReloaded else { return worker.pipeline.advance(now: now) }
        coverage.reloads += 1
        let settings = worker.pipeline.state.settings
        var lowered = settings
        lowered.events.recordBytesMax = 128
        lowered.splitAbove = 1
        lowered.deadLetterEventBytesMax = 0
        worker.adopt(lowered)
        worker.pipeline.advance(now: now)
        worker.adopt(settings)
    }

    /// After a push whose gap is not kept nobody knows when it was sent.
    private mutating func noteForgottenGaps(_ number: Int) {
        if workers[number]!.pipeline.counters.gapsForgotten > 0 { kafka.checksGaps = false }
    }

    mutating func fanOut(_ number: Int, steps: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        try worker.withTime(world: kafka, now: now) {
            _ = worker.pipeline.advanceFanOuts(steps: steps, now: now)
        }
    }
}
