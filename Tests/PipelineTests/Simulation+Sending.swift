// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Lifecycle
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What a worker sends to APNs and to Kafka, and the results.
extension Simulation {
    mutating func handOver(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard worker.lifecycle.mayHandOver else { return }
        let now = time(of: number)
        for pool in 0..<2 {
            var dice = dice
            let weather = isDraining ? SimulatedWeather.fair : weather
            let written = worker.pipeline.records.count
            let withoutGap = worker.pipeline.counters.pushesWithoutGap
            let capacity = 1 + below(16)
            // In some lives patient pushes go only where they are owed it. They are of each kind of
            // life, since 11 shares no factor with what makes these.
            let kept = (6...8).contains(seed % 11) && !isDraining ? capacity : 0
            let count = try worker.handOver(
                pool: pool, room: PoolRoom(free: capacity, kept: kept), world: kafka, now: now
            ) { isAgain in
                let answer =
                    isDraining
                    ? .accepted : SimulatedAnswer.next(weather, isAgain: isAgain, &dice)
                if weather == .stalled { return (answer, .seconds(12)) }
                let isSlow = weather == .slow && dice.next(below: 3) == 0
                return (answer, .milliseconds(Int64(dice.next(below: isSlow ? 9000 : 300))))
            }
            try worker.note(from: written, world: kafka, now: now)
            if worker.pipeline.counters.pushesWithoutGap > withoutGap {
                coverage.note("sent without gap", worker)
            }
            for joined in worker.joined { try kafka.deferred.join(joined, now: now) }
            worker.joined = []
            self.dice = SplitMix64(seed: dice.next() ^ self.dice.next())
            for flight in worker.flights.suffix(count) {
                let isFirst = worker.pipeline.state.pushes[flight.slot].attempts == 0
                if flight.payload == nil, flight.answer == .accepted, isFirst {
                    // After a push without regard to the gap none is kept.
                    kafka.sentAt[flight.token] =
                        worker.goesWithoutGap(flight.slot) ? nil : now.monotonic
                }
                try checkEnded(flight, by: worker)
                tell("worker \(number) sends \(flight)")
            }
        }
    }

    /// Of a payload that comes from its row: whoever has deferred it, and had a newer one accepted
    /// since, has told the owner, or is about to.
    private func checkEnded(
        _ flight: SimulationModel.Flight, by owner: SimulationWorker
    ) throws(SimulationFailure) {
        guard flight.payload?.event.payload?.collapseID != nil,
            owner.pipeline.state.pushes[flight.slot].isOfDeferredShare
        else { return }
        for worker in workers.compactMap(\.self) where worker !== owner {
            try require(
                !worker.mustHaveEnded(flight.key, payloadAt: flight.payloadAt, world: kafka),
                "an older payload was not ended: \(String(decoding: flight.key, as: UTF8.self))")
        }
    }

    mutating func answer(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        // Out of order: the first one due from a random place on.
        for _ in 0..<8 {
            let due = worker.flights.indices.filter { worker.flights[$0].dueAt <= now.monotonic }
            guard let index = due.randomElement(using: &dice) else { return }
            let flight = worker.flights[index]
            tell("worker \(number) hears \(flight.answer.rawValue) of \(flight.slot)")
            coverage.note(
                flight.answer.rawValue, worker, push: worker.pipeline.state.pushes[flight.slot])
            let merged = worker.pipeline.state.outbox.merged.failures
            try worker.answered(index, world: &kafka, now: now)
            if worker.pipeline.state.outbox.merged.failures > merged {
                coverage.note("failures merged", worker)
            }
        }
    }

    /// Sends what is to be produced.
    mutating func produce(_ number: Int) {
        let worker = workers[number]!
        let now = time(of: number)
        for record in worker.pipeline.takeRecords() {
            var delay = Duration.milliseconds(Int64(dice.next(below: isDraining ? 50 : 600)))
            if !isDraining, record.topic == .deferred { delay = delay + slowness() }
            // Records of one key go to one partition, and an idempotent producer keeps their order.
            let previous = worker.produced.last {
                $0.record.topic == record.topic && $0.record.key == record.key
            }
            let dueAt = max(now.monotonic + delay, previous?.dueAt ?? now.monotonic)
            worker.produced.append((record, dueAt))
        }
    }

    /// Delivers the acknowledgements of records: in any order, apart from those of one key.
    mutating func collect(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        let now = time(of: number)
        let topic = kafka.deferred
        let time = self.now
        func isDue(_ record: OutgoingRecord, at dueAt: MonotonicTime) -> Bool {
            dueAt <= now.monotonic && topic.takes(record, now: time)
        }
        let due = worker.produced.filter { isDue($0.record, at: $0.dueAt) }
        worker.produced.removeAll { isDue($0.record, at: $0.dueAt) }
        let order = due.indices.sorted { (due[$0].dueAt, $0) < (due[$1].dueAt, $1) }
        for record in order.map({ due[$0].record }) {
            let roll = isDraining ? 99 : below(100)
            if roll < 12 {
                coverage.note("refused record", worker)
                worker.refused(record, world: &kafka, now: now)
                tell(
                    "worker \(number): ticket \(record.ticket) is refused, \(Self.text(of: record))"
                )
            } else if roll < 16, record.topic != .deferred || worker.waits(for: record) {
                // A tombstone is never too large.
                coverage.note("too large record", worker)
                tell(
                    "worker \(number): ticket \(record.ticket) is too large, \(Self.text(of: record))"
                )
                try worker.tooLarge(record, world: &kafka, now: now)
            } else {
                keep(record, of: worker, owing: worker.model.take(record.ticket))
                worker.acknowledged(record, world: &kafka)
                tell(
                    "worker \(number): ticket \(record.ticket) is acknowledged, \(Self.text(of: record))"
                )
            }
        }
    }

    /// What a record of ours says, for the story.
    private static func text(of record: OutgoingRecord) -> String {
        let end = record.endedOffset.map { " ended up to \($0)" } ?? ""
        let value = record.value.map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(record.topic) \(String(decoding: record.key, as: UTF8.self))\(end)\(value)"
    }

    mutating func keep(
        _ record: OutgoingRecord, of worker: SimulationWorker, owing debts: [SimulationModel.Debt]
    ) {
        switch record.topic {
        case .deadLetters: kafka.append(letter: record.value!)
        case .deferred:
            kafka.deferred.append(
                record, payload: record.value.flatMap { kafka.payload(in: $0) }, debts: debts,
                by: worker.life, epoch: worker.epochs[record.ticket] ?? 0, now: now)
        case .suppressions:
            kafka.suppressions.append(
                SimulatedTableRecord(
                    key: record.key, value: record.value, timestamp: now.wall, meaning: .suppression
                ))
        case .events:
            kafka.append(shard: record, event: worker.shards[record.ticket]!.event, now: now)
        }
    }

    mutating func store(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.consumer.isFenced else { return }
        let now = time(of: number)
        for index in kafka.partitions.indices {
            guard let assignment = worker.assignments[index],
                let committableOffset = worker.pipeline.committableOffset(assignment, now: now)
            else { continue }
            try require(
                committableOffset >= worker.committableOffsets[index],
                "the committable offset went back")
            try require(
                committableOffset <= worker.positions[index],
                "the committable offset was not read yet")
            try worker.requireEnded(partition: index, below: committableOffset)
            let isMoved = committableOffset > worker.committableOffsets[index]
            worker.committableOffsets[index] = committableOffset
            let hasNote = notes.next(below: 100) < 50
            let note = hasNote ? try worker.note(of: index, now: now) : nil
            // While an event is spread its place alone goes on.
            guard isMoved || note?.note.spread.isEmpty == false else { continue }
            tell("worker \(number) stores \(index)/\(committableOffset) \(note?.text ?? "-")")
            let delay = Duration.milliseconds(below(isDraining ? 50 : 600))
            commits.append(
                SimulatedCommit(
                    partition: index, epoch: kafka.partitions[index].epoch,
                    offset: committableOffset, note: note, dueAt: now.monotonic + delay))
        }
    }
}
