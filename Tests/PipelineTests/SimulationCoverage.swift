// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Lifecycle
@testable internal import Pipeline

/// Which faults met pushes at which stations: a simulation that finds nothing should have been
/// there at least.
struct SimulationCoverage {
    /// Where pushes can be when a fault strikes. An answer strikes one push, whose own state counts;
    /// whatever else the worker has at that moment counts for every fault.
    enum Station: String, CaseIterable {
        // Of the push that is answered.
        case payload, followUp, orphan, again
        // Of the worker.
        case queued, inFlight, resting, fanningOut, late, letters, deferrals, waiting, taken,
            replaying
        case forgotten, open
        // Of the worker's own life.
        case revoking, stopping, paused, restarting

        var isOfPush: Bool { [.payload, .followUp, .orphan, .again].contains(self) }
        var isOfLife: Bool {
            [.revoking, .stopping, .paused, .restarting].contains(self)
        }
    }

    static let events =
        [
            "start deleted", "end truncated", "stalled", "refused record", "too large record",
            "unreadable", "bad registration", "no room", "no slot", "failures merged",
            "tombstone read", "compacted", "clock step", "split", "shard taken back",
            "pause followed", "drop followed", "limit followed", "withheld",
            "topic waits", "fan-out dropped", "deferred absent", "sent without gap",
            "deferred dropped",
            "signed out", "rows forgotten", "read again",
        ] + life
    /// What happens to the worker itself.
    static let life = [
        "assigned", "revoked", "lost", "deferred revoked", "deferred lost", "crash", "stopped",
        "ended", "restart asked", "restarted", "fenced", "client failed", "paused",
    ]
    static let answers = SimulatedAnswer.allCases.map(\.rawValue)
    static var faults: [String] { answers + events }

    private var counts: [String: [Station: Int]] = [:]
    private var met: [String: Int] = [:]
    /// Events that had ended under the owner before, and how many of them were pushed all the same.
    private(set) var remembered = 0
    private(set) var toldToNewcomers = 0
    /// Workers that began with a snapshot of the index.
    var snapshotStarts = 0
    /// Pushes that waited for the end of a window, failures that no letter of their own tells of, and
    /// what operators have dropped and released.
    private(set) var thinned = 0
    private(set) var repeated = 0
    private(set) var pushesDropped = 0
    private(set) var eventsDropped = 0
    /// Payloads that were not for whoever had the phone when their turn came.
    private(set) var unsubscribed = 0
    var eventsReleased = 0
    /// Pushes that were left to a row that waited already, and records of `deferred` for which Kafka
    /// took longer than an announcement is worth.
    private(set) var joined = 0
    /// Hand-overs in which prompt pushes passed patient ones, and in which these were owed a turn.
    private(set) var promptFirst = 0
    private(set) var owed = 0
    var slowRecords = 0
    /// Turns under lowered settings, while shards that Kafka has refused waited.
    var reloads = 0
    /// Events that were read again in the middle of a spread fan-out.
    var resumed = 0

    mutating func note(_ fault: String, _ worker: SimulationWorker, push: Push? = nil) {
        met[fault, default: 0] += 1
        for station in Station.allCases where Self.is(station, worker, push) {
            counts[fault, default: [:]][station, default: 0] += 1
        }
    }

    private static func `is`(
        _ station: Station, _ worker: SimulationWorker, _ push: Push?
    ) -> Bool {
        let load = worker.pipeline.load
        return switch station {
        case .payload: push.map { $0.coalescingKey != 0 } ?? false
        case .followUp: push?.hasFollowUp ?? false
        case .orphan: push?.isOrphaned ?? false
        case .again: push.map { $0.attempts > 0 } ?? false
        case .queued: load.queued > 0
        case .inFlight: load.inFlight > 0
        case .resting: load.resting > 0
        case .fanningOut: !worker.pipeline.fanOut.underWay.isEmpty
        case .late: !worker.pipeline.late.entries.isEmpty
        case .letters:
            worker.pipeline.state.outbox.unacknowledged
                > worker.pipeline.state.outbox.tickets.deferrals
        case .deferrals: worker.pipeline.state.outbox.tickets.deferrals > 0
        case .waiting: load.deferred > 0
        case .taken: worker.pipeline.state.pushes.deferredShareCount > 0
        case .replaying:
            zip(worker.deferredAssignments, worker.deferredEnds).contains { $0 != nil && $1 != nil }
        case .forgotten: load.forgotten > 0
        case .open: worker.pipeline.state.breakers.isAnyPoolOpen
        case .revoking: worker.lifecycle.revoke != nil
        case .stopping: worker.lifecycle.isStopping
        case .paused: worker.lifecycle.valve.isPaused
        case .restarting: worker.lifecycle.restarts.isAwaited
        }
    }

    /// A record was read.
    mutating func remembered(_ before: Counters, _ after: Counters) {
        guard after.eventsRemembered > before.eventsRemembered else { return }
        remembered += 1
        let asked =
            after.pushesQueued + after.pushesCoalesced - before.pushesQueued
            - before.pushesCoalesced
        toldToNewcomers += asked > 0 ? 1 : 0
    }

    /// A worker has come to its end.
    mutating func lived(_ worker: SimulationWorker) {
        let counters = worker.pipeline.counters
        joined += worker.joinedCount
        promptFirst += worker.sharing.promptFirst
        owed += worker.sharing.owed
        thinned += counters.pushesThinned
        repeated += counters.failuresRepeated
        pushesDropped += counters.dropped
        eventsDropped += counters.eventsDropped
        unsubscribed += counters.unsubscribed
    }

    mutating func add(_ other: SimulationCoverage) {
        remembered += other.remembered
        toldToNewcomers += other.toldToNewcomers
        snapshotStarts += other.snapshotStarts
        thinned += other.thinned
        repeated += other.repeated
        pushesDropped += other.pushesDropped
        eventsDropped += other.eventsDropped
        unsubscribed += other.unsubscribed
        eventsReleased += other.eventsReleased
        joined += other.joined
        promptFirst += other.promptFirst
        owed += other.owed
        slowRecords += other.slowRecords
        reloads += other.reloads
        resumed += other.resumed
        met.merge(other.met) { $0 + $1 }
        for (fault, row) in other.counts {
            counts[fault, default: [:]].merge(row) { $0 + $1 }
        }
    }

    /// Why a pair cannot occur, or hardly can; nil where it must.
    static func reason(_ fault: String, _ station: Station) -> String? {
        if station.isOfPush, events.contains(fault) { return "strikes the worker, not one push" }
        if station.isOfLife, !life.contains(fault) {
            return "no matter of the worker's life"
        }
        switch (fault, station) {
        case ("revoked", .revoking), ("deferred revoked", .revoking):
            return "the group waits for one answer at a time"
        case ("stopped", .stopping): return "a worker stops once"
        case ("restarted", .revoking), ("restarted", .stopping), ("restarted", .restarting):
            return "a restart waits for the end of a drain, and is made once"
        case ("paused", .stopping):
            return "a drain decides what is read"
        case ("ended", .inFlight): return "a stop waits for the last answers"
        case ("split", .late), ("unreadable", .late), ("withheld", .late):
            return "no event is read while a late request waits"
        case ("pause followed", .late), ("drop followed", .late), ("limit followed", .late):
            return "no restriction is read while a late request waits"
        case ("bad registration", .late), ("signed out", .late):
            return "no registration is read while one waits"
        case ("compacted", .deferrals): return "compaction lags behind what is on its way"
        case ("compacted", .forgotten):
            return "what is hidden is written again when it is read again"
        case ("compacted", .replaying): return "compaction lags behind the reader"
        default: return nil
        }
    }

    /// Common pairs that were not met at all: those of answers and of what each life brings.
    var commonGaps: [String] {
        Self.faults.filter { met[$0] == nil }
            + ["assigned", "revoked", "lost", "stopped", "restart asked"].flatMap { fault in
                [Station.revoking, .stopping, .paused, .restarting]
                    .filter { Self.reason(fault, $0) == nil && counts[fault]?[$0] == nil }
                    .map { "\(fault) × \($0.rawValue)" }
            }
            + Self.answers.flatMap { answer in
                [Station.payload, .followUp, .again, .queued, .fanningOut, .letters, .waiting]
                    .filter { counts[answer]?[$0] == nil }.map { "\(answer) × \($0.rawValue)" }
            }
    }

    /// Pairs met less than `least` times. Late requests need a registration that finds no slot in
    /// the instant after an event: few enough that they are asked for once, not `least` times, and in
    /// a few lives not at all.
    func gaps(least: Int) -> [String] {
        Self.faults.flatMap { fault in
            Station.allCases.compactMap { station in
                guard Self.reason(fault, station) == nil else { return nil }
                let count = counts[fault]?[station] ?? 0
                let asked = station == .late ? min(1, least) : least
                return count < asked ? "\(fault) × \(station.rawValue): \(count)" : nil
            }
        } + Self.faults.filter { met[$0] == nil && (least > 0 || $0 != "no slot") }
    }

    var table: String {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let stations = Station.allCases
        let head = padded("", 18) + "met       " + stations.map { padded($0.rawValue, 10) }.joined()
        let rows = Self.faults.map { fault in
            padded(fault, 18) + padded("\(met[fault] ?? 0)", 10)
                + stations.map { padded("\(counts[fault]?[$0] ?? 0)", 10) }.joined()
        }
        return ([head] + rows).joined(separator: "\n")
    }
}
