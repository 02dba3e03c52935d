// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

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
    var dice: SplitMix64
    /// Which commits have notes: apart, since a worker's life does not depend on them.
    var notes: SplitMix64
    /// What happens to `deferred` where pushes have a minimum gap: apart, as `notes`.
    var faults: SplitMix64
    /// Which index is kept, and which one a worker begins with: apart, as `notes`.
    var snapshotDice: SplitMix64
    var snapshots: [SimulatedSnapshot] = []
    var slowRecords = 0
    /// How many processes have been started.
    var lives = 0
    var traffic: SimulationTraffic
    var operators: SimulatedOperators
    var weather = SimulatedWeather.fair
    var isDraining = false
    var clocks: SimulatedClocks
    /// Offsets on their way to Kafka: some come after their partition was assigned again.
    var commits: [SimulatedCommit] = []

    init(seed: UInt64, isTold: Bool = false) {
        self.seed = seed
        self.isTold = isTold
        dice = SplitMix64(seed: seed)
        notes = SplitMix64(seed: seed &* 17 &+ 3)
        faults = SplitMix64(seed: seed &* 19 &+ 5)
        snapshotDice = SplitMix64(seed: seed &* 23 &+ 7)
        traffic = SimulationTraffic(seed: seed &* 31 &+ 7)
        operators = SimulatedOperators(seed: seed)
        clocks = SimulatedClocks(workers: workers.count, dice: &dice)
        // A gap is as exact as the clocks of those who own a partition in turn.
        if seed % 8 == 1 { clocks.agree() }
        kafka.checksGaps = seed % 8 == 1
    }

    /// Pushes to one control are further apart than a push may be held, those to one widget are not.
    var minimumGaps: MinimumGaps {
        var gaps = MinimumGaps()
        guard seed % 4 == 1 else { return gaps }
        gaps[.controls] = .milliseconds(Int64(5500 + seed % 3000))
        // Short enough for each `holdMax` that a worker may have here: between a worker that keeps a gap
        // in memory and one that keeps it in `deferred`, it is not kept.
        gaps[.widgets] = .milliseconds(min(800, Int64(300 + seed % 600)))
        return gaps
    }

    /// Few pushes of a day that is a minute, so that it passes several times in a life.
    var budgets: PushBudgets {
        var budgets = PushBudgets()
        guard seed % 4 == 3 else { return budgets }
        budgets[.controls] = 2 + Int(seed / 4 % 3)
        budgets[.widgets] = 2
        budgets.isThinning = true
        budgets.day = .seconds(60)
        return budgets
    }

    /// What the configuration of both workers has, in some of the lives.
    var configured: PipelineSettings {
        var settings = PipelineSettings()
        settings.minimumGaps = minimumGaps
        settings.budgets = budgets
        if seed % 7 == 3 { settings.fanOutMax = 4 + Int(seed / 7 % 4) }
        // Few tokens fail twice: long enough for these, and short enough to be over in `drain`.
        if seed % 2 == 0 { settings.deadLetterRepeatAfter = .seconds(Int64(20 + seed / 2 % 80)) }
        return settings
    }

    /// The time as this worker's machine tells it.
    func time(of number: Int) -> Now { clocks.now(of: number, now) }

    mutating func chance(_ percent: UInt64) -> Bool { dice.next(below: 100) < percent }
    mutating func below(_ bound: Int) -> Int { Int(dice.next(below: UInt64(bound))) }

    mutating func tell(_ text: @autoclosure () -> String) {
        guard isTold else { return }
        let at = (now.monotonic.nanoseconds - 5_000_000_000_000) / 1_000_000
        story.append("\(at) ms: \(text())")
    }

    // MARK: The run

    mutating func run(steps: Int) throws(SimulationFailure) {
        for _ in 0..<6 { kafka.append(registration: traffic.registration(now: now)) }
        for number in workers.indices { try start(number) }
        try assignFree()
        for _ in 0..<steps {
            try step()
            try check()
        }
        try drain()
        for worker in workers.compactMap(\.self) {
            coverage.lived(worker)
        }
        coverage.slowRecords = slowRecords
    }

    mutating func step() throws(SimulationFailure) {
        pass(below(100) < 96 ? .milliseconds(below(40)) : .milliseconds(below(3000)))
        if dice.next(below: 1000) < 2 { pass(.seconds(1500)) }
        let number = below(2)
        switch below(100) {
        case 0..<18: emit()
        case 18..<26: register()
        case 26..<36: try readTables(number, limit: 1 + below(6))
        case 36..<54: try readEvents(number, limit: 1 + below(6))
        case 54..<62:
            try timers(number)
            // Apart, so that what was deferred is told from what the fan-outs bring after it.
            try fanOut(number, steps: 1 + below(20))
        case 62..<74: try handOver(number)
        case 74..<86: try answer(number)
        case 86..<91:
            produce(number)
            try collect(number)
        case 91..<96: try store(number)
        case 96: turnWeather()
        case 97: try revoke(number, deferred: false)
        case 98: try lose(number, deferred: false)
        default: if chance(40) { try crash(number) } else if chance(50) { try stop(number) }
        }
        if chance(10) { try readDeferred(number, limit: 1 + below(8)) }
        if chance(10) { try readAgain(number, limit: 1 + below(3)) }
        if chance(1) { try lose(number, deferred: true) }
        if chance(1) { try revoke(number, deferred: true) }
        switch dice.next(below: 1000) {
        case 0..<4: stall(number)
        case 4..<6: try fence(number)
        case 6: try failClient(number)
        case 7..<11: takeLeader()
        default: break
        }
        if chance(2) { compactDeferred() }
        dropDeferred()
        if chance(1) { stepClock(number) }
        try operate()
        for number in workers.indices { try endTurn(number) }
    }

    mutating func stepClock(_ number: Int) {
        coverage.note("clock step", workers[number]!)
        let step = clocks.step(number, dice: &dice)
        tell("worker \(number)'s clock is set by \(step)")
    }

    /// A partition of `deferred` loses its leader for a while.
    private mutating func takeLeader() {
        let index = below(kafka.deferred.partitions.count)
        let time = Duration.milliseconds(1000 + below(19_000))
        kafka.deferred.partitions[index].absentUntil = now.monotonic + time
        for worker in workers.compactMap(\.self) { coverage.note("deferred absent", worker) }
        tell("partition \(index) of deferred has no leader for \(time)")
    }

    private mutating func turnWeather() {
        let count = UInt64(SimulatedWeather.allCases.count)
        weather = SimulatedWeather(rawValue: dice.next(below: count))!
        guard weather == .stalled else { return }
        for worker in workers.compactMap(\.self) { coverage.note("stalled", worker) }
    }

    mutating func pass(_ duration: Duration) {
        now.monotonic = now.monotonic + duration
        now.wall = now.wall + duration
        for store in commits where store.dueAt <= now.monotonic {
            kafka.partitions[store.partition].store(
                store.offset, store.note, epoch: store.epoch)
        }
        commits.removeAll { $0.dueAt <= now.monotonic }
    }

    mutating func check() throws(SimulationFailure) {
        for worker in workers.compactMap(\.self) {
            worker.model.forgive(now: now)
            try worker.check()
        }
        for number in workers.indices where workers[number] != nil { try checkLife(of: number) }
        for (index, partition) in kafka.partitions.enumerated() {
            guard let owner = partition.owner, let worker = workers[owner] else { continue }
            try worker.requireEnded(partition: index, below: partition.stored)
        }
    }

    // MARK: Producers

    mutating func emit() {
        let index = below(kafka.partitions.count)
        let offset = kafka.partitions[index].end
        let record = traffic.event(at: offset, now: now)
        kafka.append(record, to: index)
        if let event = record.event, let payload = event.payload {
            kafka.payloads[payload.body] = event
        }
        kafka.partitions[index].end = offset + (chance(10) ? 3 : 1)
        tell("\(index)/\(offset) is produced: \(record.key ?? "-") \(record.value ?? "-")")
    }

    mutating func register() {
        if chance(6), let suppression = kafka.suppressions.randomElement(using: &dice) {
            kafka.suppressions.append(
                SimulatedTableRecord(
                    key: suppression.key, value: nil, timestamp: now.wall, meaning: .suppression))
            tell("revoked: \(String(decoding: suppression.key, as: UTF8.self))")
            return
        }
        if chance(35) {
            for record in traffic.otherOwner(now: now) {
                kafka.append(registration: record)
                tell("another owner: \(String(decoding: record.key, as: UTF8.self))")
            }
        }
        let record = traffic.registration(now: now)
        kafka.append(registration: record)
        tell("\(String(decoding: record.key, as: UTF8.self)): \(record.meaning)")
    }
}
