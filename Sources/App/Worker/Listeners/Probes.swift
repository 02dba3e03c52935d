// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import KafkaLog
internal import PushModel

/// Answers the three probes of Kubernetes. Each looks at this process alone: an outage of Kafka or
/// APNs must not restart workers that are well.
struct Probes: Sendable {
    /// That of the planner.
    let control: WorkerControl
    /// The heartbeats of the delivery threads.
    let delivery: [Heartbeat]
    /// A thread that has not beaten for so long is stuck. An idle thread beats once a second, and
    /// the longest call that blocks one, the closing of a consumer, takes 5 s.
    var silenceMax = Duration.seconds(20)

    /// The threads that do not turn any more. One that has not begun yet counts as alive: it looks
    /// up its topics in Kafka, and gives up by itself.
    func stuckThreads(now: MonotonicTime) -> [WorkerStatus.StuckThread] {
        let threads =
            [("the planner", control.heartbeat)]
            + delivery.enumerated().map { ("delivery thread \($0)", $1) }
        return threads.compactMap { thread, heartbeat in
            guard let age = heartbeat.age(now: now), age > silenceMax else { return nil }
            return WorkerStatus.StuckThread(thread: thread, silence: age)
        }
    }

    /// `/livez`: whether every thread still turns.
    func isAlive(now: MonotonicTime) -> HTTPAnswer {
        let lines = stuckThreads(now: now).map {
            "\($0.thread) has not turned for \($0.silence.components.seconds) s"
        }
        return lines.isEmpty ? .text("ok") : .text(lines.joined(separator: "\n"), status: 503)
    }

    /// `/readyz`: whether the worker's index is complete and fresh, and its group has said which
    /// partitions are its own, which may be none. Nobody sends a worker requests: what this holds back
    /// is the next step of a rollout, which would make each of these worse.
    ///
    /// - Parameter status: nil if the planner has not answered.
    func isReady(_ status: WorkerStatus?) -> HTTPAnswer {
        guard let status else { return unanswered }
        switch status.phase {
        case .replaying: return .text(Self.progress(status.index), status: 503)
        case .draining, .stopped: return .text("the worker is stopping", status: 503)
        case .running: break
        }
        if let age = status.index.tables.map(\.age).max(), age > TableReader.ageMax {
            return .text(
                "the index is \(age.components.seconds) s behind its topics", status: 503)
        }
        guard status.hasJoinedGroup else {
            return .text("the group is not joined yet", status: 503)
        }
        if let wait = status.groupWait {
            let seconds = wait.components.seconds
            return wait > Diagnosis.rebalanceMax
                ? .text("the group has been rebalancing for \(seconds) s", status: 503)
                : .text("ok: the group has not given out its partitions yet")
        }
        return .text(status.partitions.isEmpty ? "ok: the group has given it no partitions" : "ok")
    }

    /// `/startupz`: whether the worker has read all registrations and suppressions once.
    func hasStarted(_ status: WorkerStatus?) -> HTTPAnswer {
        guard let status else { return unanswered }
        return status.phase == .replaying
            ? .text(Self.progress(status.index), status: 503) : .text("ok")
    }

    /// The answer to whatever needs the planner, where it gives none.
    var unanswered: HTTPAnswer {
        .text(control.isStarting ? Self.starting : "the planner does not answer", status: 503)
    }

    /// What the planner's thread does before its first turn.
    static let starting = "the worker is starting: it looks up its topics in Kafka"

    static func progress(_ index: WorkerStatus.Index) -> String {
        var text = "reading registrations and suppressions: \(index.recordsRead) records"
        if let share = index.share {
            text += ", \(Int(share * 100)) %"
            if let left = index.timeLeft { text += ", about \(left.components.seconds) s left" }
        }
        return text
    }
}
