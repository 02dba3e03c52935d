// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// Which faults met the pipeline in which state: a simulation that finds nothing should have been
/// there at least.
struct SimulationCoverage {
    private var counts: [String: [String: Int]] = [:]

    static let states = [
        "met", "payload", "trailing", "orphan", "again", "walking", "late", "letters", "shut",
        "deferred",
    ]
    static let events = [
        "revoked", "lost", "crash", "refused record", "too large record", "unreadable",
        "bad registration", "no room", "no slot", "deferred lost", "null read", "compacted",
    ]
    static var faults: [String] { SimulatedAnswer.allCases.map(\.rawValue) + events }

    mutating func note(_ fault: String, _ worker: SimulationWorker, push: WaitingPush? = nil) {
        count(fault, "met")
        if let push {
            if push.coalescingKey != 0 { count(fault, "payload") }
            if push.isDirty { count(fault, "trailing") }
            if push.isOrphaned { count(fault, "orphan") }
            if push.attempts > 0 { count(fault, "again") }
        }
        if !worker.pipeline.fanOuts.isEmpty { count(fault, "walking") }
        if !worker.pipeline.lateRequests.isEmpty { count(fault, "late") }
        if worker.pipeline.load.unacknowledged > 0 { count(fault, "letters") }
        if worker.pipeline.pools[0].gate.isShut { count(fault, "shut") }
        if worker.pipeline.load.deferred > 0 { count(fault, "deferred") }
    }

    private mutating func count(_ fault: String, _ state: String) {
        counts[fault, default: [:]][state, default: 0] += 1
    }

    mutating func add(_ other: SimulationCoverage) {
        for (fault, row) in other.counts {
            counts[fault, default: [:]].merge(row) { $0 + $1 }
        }
    }

    /// Faults that were never met, and answers that never met a push of some kind.
    var gaps: [String] {
        var gaps = Self.faults.filter { counts[$0]?["met"] == nil }
        for answer in SimulatedAnswer.allCases {
            for state in ["payload", "trailing", "orphan", "again", "walking", "letters"]
            where counts[answer.rawValue]?[state] == nil {
                gaps.append("\(answer.rawValue) × \(state)")
            }
        }
        return gaps
    }

    var table: String {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let head = padded("", 18) + Self.states.map { padded($0, 10) }.joined()
        let rows = Self.faults.map { fault in
            padded(fault, 18)
                + Self.states.map { padded("\(counts[fault]?[$0] ?? 0)", 10) }.joined()
        }
        return ([head] + rows).joined(separator: "\n")
    }
}
