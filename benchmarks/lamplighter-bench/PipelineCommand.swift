// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Delivery
import Intake
import Pipeline
import PushModel
import RecordFormats

/// Intake, index, planning and ledger: everything of a push but its input and output.
struct PipelineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pipeline",
        abstract: "Runs the pipeline without I/O: key-only events in, accepted outcomes back.")

    @Option(help: "Tokens in the index.")
    var tokens = 20_000

    @Option(help: "Tokens that show the subject of an event.")
    var fanOut = 1

    @Option(help: "How often each token is pushed to.")
    var rounds = 50

    @Option(help: "How often before that, which is not measured.")
    var warmUp = 0

    @Flag(help: "Trace sampled events; each event has a traceparent that says that it is not.")
    var traceparent = false

    func run() throws {
        var bench = try PipelineBench(tokens: tokens, fanOut: fanOut, areTraced: traceparent)
        for _ in 0..<warmUp { bench.round() }
        let before = (pushes: bench.pushes, cpu: ProcessUsage.cpuMicroseconds)
        for _ in 0..<rounds { bench.round() }
        let cpu = ProcessUsage.cpuMicroseconds - before.cpu
        let pushes = bench.pushes - before.pushes
        guard pushes == rounds * tokens else {
            throw BenchError("\(pushes) pushes instead of \(rounds * tokens)")
        }
        try Report.print(Figures(pushes: pushes, cpuMicroseconds: cpu))
    }

    private struct Figures: Encodable {
        var pushes: Int
        var cpuMicroseconds: Int
    }
}

/// The pipeline, its clock, and an APNs that accepts at once.
struct PipelineBench: ~Copyable {
    private(set) var pushes = 0
    var pipeline: PushPipeline
    private let assignment = AssignmentID(ordinal: 0, epoch: 1)
    var now = Now(
        monotonic: MonotonicTime(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))
    private var offset: Int64 = 0
    private let subjects: [[UInt8]]
    private var batch = [PushSlot](repeating: 0, count: 1024)

    /// As many as a worker's turn hands to the pipeline at most, divided by eight: small enough for
    /// the slots at fan-out 10.
    private static let eventsPerTurn = 64
    private static let fanOutStepsPerTurn = 2048
    /// The same number as the consumer of events prefetches.
    private static let keysPrefetched = 32

    /// The header of every event; empty if they have none.
    private let traceparent: [UInt8]

    /// - Parameter areTraced: whether sampled events are traced, of which there are none.
    init(tokens: Int, fanOut: Int, areTraced: Bool = false) throws {
        var settings = PipelineSettings()
        settings.eventTopics = ["events"]
        settings.seed = 7
        traceparent =
            areTraced ? Array("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".utf8) : []
        if areTraced {
            settings.events.readsTraceparent = true
            settings.tracing = TraceSettings(ratio: 0) { _ in "" }
        }
        pipeline = try PushPipeline(
            routing: Town.routing(), bindings: [.standard], settings: settings,
            slab: PushSlab(slots: settings.slots))
        pipeline.assigned(assignment, topic: 0, partition: 0, startOffset: 0)
        subjects = (0..<Town(tokens: tokens).subjects(fanOut: fanOut)).map {
            Array(Town.subject($0, fanOut: fanOut).utf8)
        }
        for number in 0..<tokens { register(Town.registration(number, fanOuts: [fanOut])) }
    }

    private mutating func register(_ registration: RegistrationDraft) {
        RegistrationEncoder.key(registration).withUnsafeBytes { key in
            RegistrationEncoder.value(registration).withUnsafeBytes { value in
                _ = pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: value, timestamp: now.wall, partition: 0, offset: 0),
                    now: now)
            }
        }
    }

    /// One event for each subject; returns when every push of theirs has ended.
    mutating func round() {
        for position in subjects.indices {
            if position % Self.keysPrefetched == 0 { prefetch(from: position) }
            read(position)
            if offset % Int64(Self.eventsPerTurn) == 0 { finishTurn() }
        }
        finishTurn()
        now.monotonic = now.monotonic + .milliseconds(10)
        now.wall = now.wall + .milliseconds(10)
    }

    private mutating func prefetch(from first: Int) {
        for position in first..<min(first + Self.keysPrefetched, subjects.count) {
            subjects[position].withUnsafeBytes { pipeline.prefetch(key: $0, binding: 0) }
        }
    }

    private mutating func read(_ position: Int) {
        subjects[position].withUnsafeBytes { key in
            traceparent.withUnsafeBytes { traceparent in
                pipeline.eventRecord(
                    EventRecord(
                        binding: 0, key: key, value: nil, timestamp: now.wall, offset: offset),
                    of: assignment, now: now
                ) { _ in traceparent.isEmpty ? nil : traceparent }
            }
        }
        offset += 1
    }

    private mutating func finishTurn() {
        pipeline.advance(now: now)
        _ = pipeline.advanceFanOuts(steps: Self.fanOutStepsPerTurn, now: now)
        while true {
            let count = batch.withUnsafeMutableBufferPointer {
                // All of these pushes are prompt, so there is one batch.
                pipeline.handOver(
                    PoolID(rawValue: 0), PoolRoom(free: $0.count, kept: 0), by: $0, now: now
                ) { _, _ in }.count
            }
            if count == 0 { break }
            for slot in batch[..<count] {
                pipeline.outcome(
                    PushOutcome(slot: slot, kind: .answered, status: 200), now: now)
            }
            pushes += count
        }
        _ = pipeline.committableOffset(assignment, now: now)
    }
}
