// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// Two workers, Kafka and APNs in one thread with a clock of their own. Everything that happens
/// follows from the seed.
struct Simulation {
    let seed: UInt64
    var now = Now(
        monotonic: MonotonicTime(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))
    var kafka = SimulatedKafka()
    var workers: [SimulationWorker?] = [nil, nil]
    var coverage = SimulationCoverage()
    /// The last things that happened; kept only when a failure is replayed.
    private(set) var story: [String] = []
    private let isTold: Bool
    private var dice: SplitMix64
    private var traffic: SimulationTraffic
    private var weather = SimulatedWeather.fair
    private var isDraining = false

    init(seed: UInt64, isTold: Bool = false) {
        self.seed = seed
        self.isTold = isTold
        dice = SplitMix64(seed: seed)
        traffic = SimulationTraffic(seed: seed &* 31 &+ 7)
    }

    private mutating func chance(_ percent: UInt64) -> Bool { dice.next(below: 100) < percent }
    private mutating func below(_ bound: Int) -> Int { Int(dice.next(below: UInt64(bound))) }

    private mutating func tell(_ text: @autoclosure () -> String) {
        guard isTold else { return }
        let at = (now.monotonic.nanoseconds - 5_000_000_000_000) / 1_000_000
        story.append("\(at) ms: \(text())")
    }

    // MARK: The run

    mutating func run(steps: Int) throws(SimulationFailure) {
        for _ in 0..<6 { kafka.registrations.append(traffic.registration(now: now)) }
        for number in workers.indices { try start(number) }
        for _ in 0..<steps {
            try step()
            try check()
        }
        try drain()
    }

    private mutating func step() throws(SimulationFailure) {
        pass(below(100) < 96 ? .milliseconds(below(40)) : .milliseconds(below(3000)))
        if dice.next(below: 1000) < 2 { pass(.seconds(1500)) }
        let number = below(2)
        switch below(100) {
        case 0..<18: emit()
        case 18..<26: register()
        case 26..<36: try readTables(number, limit: 1 + below(6))
        case 36..<54: try readEvents(number, limit: 1 + below(6))
        case 54..<62: try advance(number, steps: 1 + below(20))
        case 62..<74: try handOver(number)
        case 74..<86: try answer(number)
        case 86..<91: try acknowledge(number)
        case 91..<96: try store(number)
        case 96: weather = SimulatedWeather(rawValue: dice.next(below: 6))!
        case 97: try revoke(number)
        case 98: lose(number)
        default: if chance(40) { try crash(number) }
        }
        if chance(10) { try readDeferred(number, limit: 1 + below(8)) }
        if chance(1) { try loseDeferred(number) }
        if chance(2) { compactDeferred() }
    }

    private mutating func pass(_ duration: Duration) {
        now.monotonic = now.monotonic + duration
        now.wall = now.wall + duration
    }

    private mutating func check() throws(SimulationFailure) {
        for worker in workers.compactMap(\.self) {
            worker.model.forgive(now: now)
            try worker.check()
        }
        kafka.deferred.forgive(now: now)
        for (index, partition) in kafka.partitions.enumerated() {
            guard let owner = partition.owner, let worker = workers[owner] else { continue }
            if let debt = worker.model.lost(partition: index, stored: partition.stored) {
                throw SimulationFailure(
                    text: "offset \(partition.stored) of partition \(index) is stored, but "
                        + "offset \(debt.read.offset) is owed: \(debt)")
            }
        }
    }

    // MARK: Producers

    private mutating func emit() {
        let index = below(kafka.partitions.count)
        let offset = kafka.partitions[index].end
        let record = traffic.event(at: offset, now: now)
        kafka.partitions[index].records.append(record)
        if let event = record.event, let payload = event.payload {
            kafka.payloads[payload.body] = event
        }
        kafka.partitions[index].end = offset + (chance(10) ? 3 : 1)
        tell("\(index)/\(offset) is produced: \(record.key ?? "-") \(record.value ?? "-")")
    }

    private mutating func register() {
        if chance(6), let verdict = kafka.verdicts.randomElement(using: &dice) {
            kafka.verdicts.append(
                SimulatedTableRecord(
                    key: verdict.key, value: nil, timestamp: now.wall, meaning: .verdict))
            tell("revoked: \(String(decoding: verdict.key, as: UTF8.self))")
            return
        }
        let record = traffic.registration(now: now)
        kafka.registrations.append(record)
        tell("\(String(decoding: record.key, as: UTF8.self)): \(record.meaning)")
    }

    // MARK: Assignment

    private mutating func start(_ number: Int) throws(SimulationFailure) {
        let worker = SimulationWorker(partitions: kafka.partitions.count, dice: &dice)
        workers[number] = worker
        tell("worker \(number) starts with \(worker.settings.slots) slots")
        let isCompacted = chance(50)
        let registrations = kafka.registrations
        let verdicts = kafka.verdicts
        let replay =
            isCompacted
            ? SimulatedKafka.compacted(registrations, end: registrations.count)
                + SimulatedKafka.compacted(verdicts, end: verdicts.count)
            : verdicts + registrations
        for record in replay { try worker.apply(record, now: now) }
        worker.registrationsRead = registrations.count
        worker.verdictsRead = verdicts.count
        for index in kafka.partitions.indices where kafka.partitions[index].owner == nil {
            if index % 2 == number || chance(30) { assign(index, to: number) }
        }
        for index in kafka.deferred.partitions.indices
        where kafka.deferred.partitions[index].owner == nil {
            if index % 2 == number || chance(30) { assignDeferred(index, to: number) }
        }
    }

    private mutating func assignDeferred(_ index: Int, to number: Int) {
        let worker = workers[number]!
        kafka.deferred.partitions[index].owner = number
        worker.deferredTracks[index] = worker.pipeline.deferredAssigned()
        worker.deferredPositions[index] = 0
        worker.deferredEnds[index] = kafka.deferred.partitions[index].end
        tell("worker \(number) is assigned deferred \(index)")
    }

    private mutating func compactDeferred() {
        for index in kafka.deferred.partitions.indices {
            let partition = kafka.deferred.partitions[index]
            guard let owner = partition.owner, let worker = workers[owner],
                worker.deferredEnds[index] == nil, worker.deferrals.isEmpty,
                partition.records.allSatisfy({ $0.offset < worker.deferredPositions[index] })
            else { continue }
            kafka.deferred.compact(index)
            coverage.note("compacted", worker)
        }
    }

    /// The partition goes to somebody else, without notice.
    private mutating func loseDeferred(_ number: Int) throws(SimulationFailure) {
        let owned = kafka.deferred.partitions.indices.filter {
            kafka.deferred.partitions[$0].owner == number
        }
        guard let index = owned.randomElement(using: &dice) else { return }
        let worker = workers[number]!
        coverage.note("deferred lost", worker)
        tell("worker \(number) gives up deferred \(index)")
        let written = worker.pipeline.records.count
        worker.pipeline.deferredUnassigned(worker.deferredTracks[index]!)
        worker.deferredTracks[index] = nil
        try worker.note(from: written, world: kafka, now: now)
        assignDeferred(index, to: chance(70) ? 1 - number : number)
    }

    private mutating func assign(_ index: Int, to number: Int) {
        let worker = workers[number]!
        let partition = kafka.partitions[index]
        kafka.partitions[index].owner = number
        worker.tracks[index] = worker.pipeline.assigned(
            topic: partition.topic, partition: partition.number, startOffset: partition.stored)
        worker.positions[index] = partition.stored
        tell("worker \(number) is assigned \(index) from \(partition.stored)")
    }

    private mutating func unassign(_ index: Int, from number: Int) {
        let worker = workers[number]!
        worker.pipeline.unassigned(worker.tracks[index]!)
        worker.tracks[index] = nil
        worker.model.unassigned(partition: index)
        kafka.partitions[index].owner = nil
        tell("worker \(number) gives up \(index)")
    }

    private mutating func owned(by number: Int) -> Int? {
        kafka.partitions.indices.filter { kafka.partitions[$0].owner == number }
            .randomElement(using: &dice)
    }

    /// The group wants a partition back: a drain of at most two seconds, then it is let go.
    private mutating func revoke(_ number: Int) throws(SimulationFailure) {
        guard let index = owned(by: number) else { return }
        coverage.note("revoked", workers[number]!)
        for _ in 0..<below(20) {
            pass(.milliseconds(100))
            try flushLetters(number)
            try turn(number)
            try check()
        }
        try store(number)
        unassign(index, from: number)
        assign(index, to: chance(60) ? 1 - number : number)
    }

    private mutating func lose(_ number: Int) {
        guard let index = owned(by: number) else { return }
        coverage.note("lost", workers[number]!)
        unassign(index, from: number)
        assign(index, to: chance(70) ? 1 - number : number)
    }

    /// The worker is killed: Kafka may still get some of what was on its way.
    private mutating func crash(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        coverage.note("crash", worker)
        tell("worker \(number) is killed")
        for (record, _) in worker.produced where chance(50) { keep(record, owing: []) }
        workers[number] = nil
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

    // MARK: One kind of work at a time

    private mutating func readTables(_ number: Int, limit: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        var left = min(limit, worker.pipeline.roomForRegistrations)
        while left > 0, worker.verdictsRead < kafka.verdicts.count {
            let record = kafka.verdicts[worker.verdictsRead]
            worker.verdictsRead += 1
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
        if !worker.pipeline.lateRequests.isEmpty { coverage.note("no slot", worker) }
    }

    private mutating func apply(
        _ record: SimulatedTableRecord, _ number: Int
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        let written = worker.pipeline.records.count
        try worker.apply(record, now: now)
        try worker.note(from: written, world: kafka, now: now)
    }

    private mutating func readDeferred(_ number: Int, limit: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        for index in kafka.deferred.partitions.indices {
            let partition = kafka.deferred.partitions[index]
            guard partition.owner == number else { continue }
            let position = worker.deferredPositions[index]
            for record in partition.records.filter({ $0.offset >= position }).prefix(limit) {
                tell("worker \(number) reads deferred \(index)/\(record.offset)")
                if record.value == nil { coverage.note("null read", worker) }
                try worker.read(record, partition: index, world: kafka, now: now)
            }
            let next = partition.records.first { $0.offset >= worker.deferredPositions[index] }
            guard let end = worker.deferredEnds[index], next.map({ $0.offset >= end }) ?? true
            else { continue }
            worker.deferredEnds[index] = nil
            let written = worker.pipeline.records.count
            worker.pipeline.deferredReplayed(worker.deferredTracks[index]!, now: now)
            try worker.note(from: written, world: kafka, now: now)
        }
    }

    private mutating func readEvents(_ number: Int, limit: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard worker.pipeline.hasRoomForEvents else { return coverage.note("no room", worker) }
        var left = min(limit, worker.pipeline.roomForEvents)
        let first = below(kafka.partitions.count)
        for place in kafka.partitions.indices {
            let index = (first + place) % kafka.partitions.count
            let partition = kafka.partitions[index]
            guard partition.owner == number else { continue }
            for record in partition.records where left > 0 {
                guard record.offset >= worker.positions[index] else { continue }
                tell("worker \(number) reads \(index)/\(record.offset)")
                if record.event == nil { coverage.note("unreadable", worker) }
                if let event = record.event { kafka.deferred.read(event, now: now) }
                try worker.read(record, partition: index, topic: partition.topic, now: now)
                left -= 1
            }
        }
    }

    private mutating func advance(_ number: Int, steps: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let moment = now
        try worker.withTime(world: kafka, now: now) {
            worker.pipeline.advance(now: moment)
        }
        // Apart, so that what was deferred is told from what the walks bring after it.
        try worker.withTime(world: kafka, now: now) {
            _ = worker.pipeline.advanceFanOuts(steps: steps, now: moment)
        }
    }

    private mutating func flushLetters(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let moment = now
        try worker.withTime(world: kafka, now: now) { worker.pipeline.flushDeadLetters(now: moment, all: true) }
    }

    private mutating func handOver(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        for pool in 0..<2 {
            var dice = dice
            let weather = isDraining ? SimulatedWeather.fair : weather
            let written = worker.pipeline.records.count
            let count = try worker.handOver(
                pool: pool, capacity: 1 + below(16), world: kafka, now: now
            ) {
                let answer = isDraining ? .accepted : SimulatedAnswer.next(weather, &dice)
                let isSlow = weather == .slow && dice.next(below: 3) == 0
                return (answer, .milliseconds(Int64(dice.next(below: isSlow ? 9000 : 300))))
            }
            try worker.note(from: written, world: kafka, now: now)
            self.dice = SplitMix64(seed: dice.next() ^ self.dice.next())
            for flight in worker.flights.suffix(count) {
                tell("worker \(number) sends \(flight)")
            }
        }
    }

    private mutating func answer(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        // Out of order: the first one due from a random place on.
        for _ in 0..<8 {
            let due = worker.flights.indices.filter { worker.flights[$0].dueAt <= now.monotonic }
            guard let index = due.randomElement(using: &dice) else { return }
            let flight = worker.flights[index]
            tell("worker \(number) hears \(flight.answer.rawValue) of \(flight.slot)")
            coverage.note(flight.answer.rawValue, worker, push: worker.pipeline.pushes[flight.slot])
            try worker.answered(index, world: &kafka, now: now)
        }
    }

    /// Sends what is to be produced, and brings what has come of it, in any order.
    private mutating func acknowledge(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        for record in worker.pipeline.records {
            let delay = Duration.milliseconds(Int64(dice.next(below: isDraining ? 50 : 600)))
            worker.produced.append((record, now.monotonic + delay))
        }
        worker.pipeline.records.removeAll()
        let due = worker.produced.filter { $0.dueAt <= now.monotonic }
        worker.produced.removeAll { $0.dueAt <= now.monotonic }
        for (record, _) in due.sorted(by: { $0.dueAt < $1.dueAt }) {
            let roll = isDraining ? 99 : below(100)
            if roll < 12 {
                coverage.note("refused record", worker)
                worker.refused(record, world: &kafka, now: now)
                tell("worker \(number): ticket \(record.ticket) is refused, \(Self.text(of: record))")
            } else if roll < 16, record.topic != .deferred || worker.waits(for: record) {
                // A null is never too large.
                coverage.note("too large record", worker)
                tell("worker \(number): ticket \(record.ticket) is too large, \(Self.text(of: record))")
                try worker.tooLarge(record, world: kafka, now: now)
            } else {
                keep(record, owing: worker.model.take(record.ticket))
                worker.acknowledged(record, world: &kafka)
                tell("worker \(number): ticket \(record.ticket) is acknowledged, \(Self.text(of: record))")
            }
        }
    }

    /// What a record of ours says, for the story.
    private static func text(of record: OutgoingRecord) -> String {
        let end = record.endedOffset.map { " ended up to \($0)" } ?? ""
        let value = record.value.map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(record.topic) \(String(decoding: record.key, as: UTF8.self))\(end)\(value)"
    }

    private mutating func keep(_ record: OutgoingRecord, owing debts: [SimulationModel.Debt]) {
        switch record.topic {
        case .deadLetters: kafka.deadLetters.append(record.value ?? [])
        case .deferred:
            kafka.deferred.append(record, debts: debts, now: now)
        case .verdicts:
            kafka.verdicts.append(
                SimulatedTableRecord(
                    key: record.key, value: record.value, timestamp: now.wall, meaning: .verdict))
        }
    }

    private mutating func store(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        for index in kafka.partitions.indices {
            guard let track = worker.tracks[index] else { continue }
            let frontier = worker.pipeline.frontier(track, now: now)
            try require(frontier >= kafka.partitions[index].stored, "the frontier went back")
            try require(frontier <= worker.positions[index], "the frontier was not read yet")
            if frontier > kafka.partitions[index].stored {
                tell("worker \(number) stores \(index)/\(frontier)")
            }
            kafka.partitions[index].stored = frontier
        }
    }

    /// Everything, as the planner does it.
    private mutating func turn(_ number: Int) throws(SimulationFailure) {
        try answer(number)
        try acknowledge(number)
        try readTables(number, limit: 64)
        try readEvents(number, limit: 64)
        try readDeferred(number, limit: 64)
        try advance(number, steps: 256)
        try handOver(number)
        try store(number)
    }

    // MARK: The end

    /// No more traffic and no more faults: everything must come to an end by itself.
    private mutating func drain() throws(SimulationFailure) {
        isDraining = true
        tell("the end begins")
        for round in 0..<2000 {
            pass(.milliseconds(100))
            for number in workers.indices { try turn(number) }
            if round % 8 == 0 { try check() }
            if isOver { break }
        }
        try check()
        for (index, partition) in kafka.partitions.enumerated() {
            let last = partition.records.last.map { $0.offset + 1 } ?? partition.stored
            try require(
                partition.stored == last || partition.records.isEmpty,
                "partition \(index) ends at \(last), and \(partition.stored) is stored; "
                    + "\(workers.map { $0!.pipeline.load })")
        }
        try require(
            kafka.deferred.debts.isEmpty,
            "owed by the deferred topic: \(kafka.deferred.debts.prefix(3))")
        for worker in workers.compactMap(\.self) {
            try require(worker.pipeline.isIdle, "something is left: \(worker.pipeline.load)")
            try require(
                worker.pipeline.ledger.holderCount == 0,
                "a holder is left: \(worker.pipeline.load), \(kafka.deferred.partitions.map(\.owner))")
            try require(worker.model.debts.isEmpty, "owed: \(worker.model.debts.prefix(3))")
            try require(worker.pipeline.load.deferred == 0, "a deferred push is left")
            try require(worker.untold.isEmpty, "rejected without a letter: \(worker.untold)")
            try require(worker.pipeline.pushes.bodies.count == 0, "a payload is left")
        }
    }

    private var isOver: Bool {
        workers.allSatisfy { worker in
            worker!.pipeline.isIdle && worker!.produced.isEmpty
                && worker!.pipeline.load.deferred == 0 && worker!.pipeline.records.isEmpty
                && worker!.pipeline.ledger.holderCount == 0
                && worker!.pipeline.pushes.bodies.count == 0
        }
            && isDeferredRead
            && kafka.partitions.allSatisfy { partition in
                partition.records.last.map { $0.offset < partition.stored } ?? true
            }
    }

    private var isDeferredRead: Bool {
        kafka.deferred.partitions.enumerated().allSatisfy { index, partition in
            guard let owner = partition.owner, let worker = workers[owner] else { return false }
            return worker.deferredEnds[index] == nil
                && partition.records.allSatisfy { $0.offset < worker.deferredPositions[index] }
        }
    }
}
