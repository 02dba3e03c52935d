// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle
@testable internal import Pipeline

/// The worker's lifecycle: `WorkerLifecycle` decides as in a real worker, and its actions are
/// performed on the simulated Kafka and APNs.
extension Simulation {
    // MARK: A turn

    /// A whole turn, as the planner takes it.
    mutating func turn(_ number: Int) throws(SimulationFailure) {
        for step in TurnStep.order {
            switch step {
            case .outcomes: try answer(number)
            case .acknowledgements: try collect(number)
            case .tables: try readTables(number, limit: 64)
            case .events:
                try readEvents(number, limit: 64)
                try readDeferred(number, limit: 64)
                try readAgain(number, limit: 64)
            case .timers: try timers(number)
            case .fanOuts: try fanOut(number, steps: 256)
            case .handOver: try handOver(number)
            case .records: produce(number)
            case .offsets: try store(number)
            case .watch: break
            case .lifecycle: try endTurn(number)
            }
        }
    }

    /// A tenth of a second of this worker. The other one does what its own life demands.
    mutating func liveOn(_ number: Int) throws(SimulationFailure) {
        pass(.milliseconds(100))
        try turn(number)
        try endTurn(1 - number)
        try check()
    }

    /// How far the consumer may be read now; nil while it is not polled.
    mutating func poll(_ number: Int) throws(SimulationFailure) -> Int? {
        let worker = workers[number]!
        let room = IntakeRoom(
            events: worker.pipeline.roomForEvents, isHalfFree: worker.pipeline.isHalfFree)
        if room.events == 0 { coverage.note("no room", worker) }
        let plan = worker.lifecycle.planPoll(room, now: time(of: number))
        if plan.actions.contains(.pause(.events)) { coverage.note("paused", worker) }
        try perform(plan.actions, number)
        return worker.consumer.isFenced ? nil : plan.limit
    }

    mutating func endTurn(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        if worker.isDeliveryLeaving {
            // It gives back all that it has before it goes.
            while !worker.flights.isEmpty { try answer(number) }
        }
        try takeTopicTurns(number)
        var facts: DrainFacts?
        if worker.lifecycle.isDraining {
            var states: [AssignmentID: DrainState] = [:]
            for id in worker.lifecycle.draining {
                states[id] = worker.pipeline.isDrained(id) ? .drained : .open
            }
            facts = DrainFacts(
                load: worker.pipeline.load, counters: worker.pipeline.counters, states: states,
                hasDeliveryEnded: worker.isDeliveryLeaving && worker.flights.isEmpty)
        }
        try perform(worker.lifecycle.advance(facts, now: now), number)
        if worker.lifecycle.end != nil { try close(number) }
        try assignFree()
    }

    // MARK: Actions

    mutating func perform(
        _ actions: [LifecycleAction], _ number: Int
    ) throws(SimulationFailure) {
        for action in actions { try perform(action, number) }
    }

    private mutating func perform(
        _ action: LifecycleAction, _ number: Int
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        tell("worker \(number): \(action)")
        switch action {
        case .openConsumer, .announceStop: break
        case .pause(let topics): worker.consumer.setPaused(true, topics)
        case .resume(let topics): worker.consumer.setPaused(false, topics)
        case .markReplayed(let id):
            guard let index = worker.deferredAssignments.firstIndex(of: id) else {
                throw SimulationFailure(text: "\(id) is replayed, and is not its own")
            }
            worker.deferredEnds[index] = nil
            let now = time(of: number)
            try worker.withTime(world: kafka, now: now) {
                worker.pipeline.deferredReplayed(id, now: now)
            }
        case .completeRevoke(let ids):
            for id in worker.consumer.revoke?.ids ?? [] {
                try requireNoAnnouncements(id, of: number)
            }
            try commitAtOnce(number, ids)
            for place in worker.consumer.completeRevoke() { release(place) }
        case .unassign(let ids): try unassign(ids, from: number)
        case .restartConsumer(let ids):
            coverage.note("restarted", worker)
            try commitAtOnce(number, ids)
            worker.consumer.isFenced = false
            let lost = worker.consumer.lose(worker.consumer.rows.map(\.id))
            for row in lost { release(row.place) }
            try perform(worker.lifecycle.lost(lost.map(\.id)), number)
        case .drainDelivery:
            try require(worker.flights.isEmpty, "delivery is to drain with pushes in flight")
            worker.isDeliveryLeaving = true
        case .stopDelivery:
            worker.isDeliveryLeaving = true
            for index in worker.flights.indices {
                worker.flights[index].dueAt = now.monotonic
                worker.flights[index].answer = chance(50) ? .unknown : .unprocessed
            }
        }
    }

    // MARK: Faults

    /// Somebody stops the worker, with more or less patience.
    mutating func stop(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.lifecycle.isStopping else { return }
        coverage.note("stopped", worker)
        let patience = [Duration.zero, .seconds(1), .seconds(4), .seconds(20)][below(4)]
        tell("worker \(number) is to stop within \(patience)")
        worker.stopsBy = now.monotonic + patience
        try perform(
            worker.lifecycle.stopRequested(patience: patience, now: time(of: number)), number)
        if chance(4) { return try failClient(number) }
        guard chance(70) else { return }
        for _ in 0..<below(40) where workers[number] === worker { try liveOn(number) }
    }

    /// Makes librdkafka stop fetching a partition, which only a restart mends.
    mutating func stall(_ number: Int) {
        let worker = workers[number]!
        guard let row = worker.consumer.rows.randomElement(using: &dice) else { return }
        coverage.note("restart asked", worker)
        tell("worker \(number) gets nothing of \(row.place) any more")
        worker.consumer.stall(row.place)
        worker.lifecycle.restartNeeded()
    }

    /// Lets another member take the worker's static name.
    mutating func fence(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.consumer.isFenced else { return }
        coverage.note("fenced", worker)
        tell("worker \(number) is fenced")
        worker.consumer.isFenced = true
        let isOpenedAgain = worker.lifecycle.fenced(now: time(of: number), reason: "fenced")
        try require(
            isOpenedAgain == (worker.lifecycle.end == nil),
            "a fenced worker goes on without a consumer")
        try endTurn(number)
    }

    /// Makes a client fail for good.
    mutating func failClient(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        coverage.note("client failed", worker)
        tell("a client of worker \(number) fails")
        worker.lifecycle.clientFailed("a client")
        try endTurn(number)
        try require(workers[number] !== worker, "a worker goes on without one of its clients")
    }

    // MARK: The end

    /// The worker has ended, for whatever reason, and another process takes its place.
    private mutating func close(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let end = worker.lifecycle.end!
        tell("worker \(number) ends: \(end)")
        if end == .stopped {
            try require(worker.flights.isEmpty, "a worker stops without its last answers")
            for id in worker.lifecycle.open.deferred {
                try requireNoAnnouncements(id, of: number)
            }
            coverage.note("ended", worker)
        }
        for step in ClosingStep.allCases {
            switch step {
            case .stopDelivery: break
            case .flushRecords:
                guard chance(80) else { continue }
                for index in worker.produced.indices {
                    worker.produced[index].dueAt = now.monotonic
                }
            case .takeAcknowledgements: try collect(number)
            case .leaveGroup: try commitAtOnce(number, worker.lifecycle.open.events)
            case .flushOutcomes: break
            case .keepIndex: if end == .stopped { keepIndex(number) }
            }
        }
        try replace(number)
    }

    /// What the worker has stored is in Kafka before it goes on.
    private mutating func commitAtOnce(
        _ number: Int, _ ids: [AssignmentID]
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.consumer.isFenced else { return }
        try store(number)
        for id in ids {
            guard let index = worker.assignments.firstIndex(of: id) else {
                throw SimulationFailure(text: "\(id) is to be stored, and is not its own")
            }
            let partition = kafka.partitions[index]
            // A coordinator that is away takes no notes; the library commits by itself later.
            let note = try worker.note(of: index, now: time(of: number))
            let isTaken = note == nil || notes.next(below: 100) < 85
            let offset = worker.committableOffsets[index]
            tell("worker \(number) leaves \(index)/\(offset) \(note?.text ?? "-"), \(isTaken)")
            kafka.partitions[index].store(offset, isTaken ? note : nil, epoch: partition.epoch)
            if isTaken { try requireCommitted(id, of: number) }
        }
    }

    /// Where everything has ended, nothing is to be sent again by the next owner.
    private mutating func requireCommitted(
        _ id: AssignmentID, of number: Int
    ) throws(SimulationFailure) {
        let worker = workers[number]!
        guard worker.pipeline.isDrained(id),
            let index = worker.assignments.firstIndex(of: id)
        else { return }
        let partition = kafka.partitions[index]
        try require(
            max(partition.stored, partition.note?.note.endedOffset ?? 0)
                >= worker.positions[index],
            "everything of partition \(index) has ended, and the next owner is not told")
    }

    // MARK: What must hold

    func checkLife(of number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let life = worker.lifecycle
        try require(
            Set(worker.consumer.rows.map(\.id)) == Set(life.open.events + life.open.deferred),
            "what is open is not what is assigned")
        try require(
            Set(worker.pipeline.eventAssignments) == Set(life.open.events)
                && Set(worker.pipeline.deferredAssignments) == Set(life.open.deferred),
            "the pipeline and the worker's life differ on what is its own")
        for row in worker.consumer.rows where !row.isMuted {
            let isPaused = life.isStopping || !row.place.isDeferred && life.valve.isPaused
            try require(row.isPaused == isPaused, "\(row.place) is paused: \(row.isPaused)")
        }
        if let revoke = worker.consumer.revoke {
            try require(
                now.monotonic - revoke.since < PipelineSettings.drainMax,
                "the group waits longer than drainMax")
        }
        if let stopsBy = worker.stopsBy, stopsBy <= now.monotonic {
            worker.turnsPastStop += 1
            try require(worker.turnsPastStop < 4, "a stop outlasts its deadline")
        }
    }
}
