// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Telemetry

extension WorkerStatus {
    /// What a worker has written to the topic of outcomes since its start.
    package struct Outcomes: Codable, Sendable {
        package var topic: String
        package var written = 0
        /// How many were dropped for want of room, and how many Kafka has refused.
        package var noRoom = 0
        package var refused = 0
        /// Why they are not written; nil if they are.
        var trouble: OutcomeTally.Trouble?

        private enum CodingKeys: String, CodingKey {
            case topic, written, noRoom, refused
        }
    }
}

extension WorkerStatus.Outcomes {
    var dropped: Int { noRoom + refused }

    var text: String {
        "\(topic): \(written.withCommas) written"
            + (dropped > 0 ? ", \(dropped.withCommas) dropped" : "")
    }
}

extension Diagnosis {
    mutating func checkOutcomes() {
        guard let outcomes = status.outcomes, let trouble = outcomes.trouble else { return }
        report(
            .warning,
            "outcomes of pushes are not written, and \(outcomes.dropped.withCommas) have been dropped: "
                + trouble.words,
            "pushes go on without them; " + trouble.remedy)
    }
}

extension WorkerMetrics {
    static let outcomes: [Metric] = [
        counter(
            "lamplighter_outcomes_written_total",
            "Records of ended pushes that are in the topic of outcomes (`kafka.topics.outcomes`)."
        ) { $0.outcomes?.written ?? 0 },
        metric(
            "lamplighter_outcomes_dropped_total", .counter, labels: ["reason"],
            "Those that were left out: for want of room (`no_room`), since Kafka has not taken them "
                + "fast enough, or because it has `refused` them or the topic is missing. Pushes go on."
        ) { status in
            labelled(
                "reason",
                [
                    ("no_room", status.outcomes?.noRoom ?? 0),
                    ("refused", status.outcomes?.refused ?? 0),
                ])
        },
    ]
}
