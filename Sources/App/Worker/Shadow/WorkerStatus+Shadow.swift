// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
package import PushModel
internal import Telemetry

extension WorkerStatus {
    /// What a worker would have sent and written since its start, if `delivery.mode` were not `shadow`.
    package struct Shadow: Codable, Sendable {
        package var pushes = 0
        package var deadLetters = 0
        /// How many lines are in the log; nil where none is configured.
        @Nullable package var lines: Int? = nil
        /// How many lines are not, for want of room in memory or on the disk.
        package var linesLost = 0
    }

    /// Says of the pushes that count as accepted that they were not sent.
    mutating func renameShadowed() {
        guard shadow != nil else { return }
        for index in pushes.indices where pushes[index].outcome == "accepted" {
            pushes[index].outcome = "shadowed"
        }
    }
}

extension WorkerStatus.Shadow {
    var text: String {
        let log = lines.map { "; \($0.counted("line")) in the log" } ?? ""
        let lost = linesLost > 0 ? ", \(linesLost.counted("line")) lost" : ""
        return "nothing is sent: \(pushes.counted("push", plural: "pushes")) and "
            + "\(deadLetters.counted("dead letter")) would have been\(log)\(lost)"
    }
}

extension Diagnosis {
    /// What comes before everything else where it is so.
    static let shadowSentence = "Nothing is sent: delivery.mode is shadow."

    mutating func checkShadow() {
        guard let shadow = status.shadow, shadow.linesLost > 0 else { return }
        report(
            .warning,
            "\(shadow.linesLost.counted("line")) of the shadow log \(shadow.linesLost == 1 ? "is" : "are") "
                + "lost, and would count as differences",
            "see the log for why the file could not be written; a slow disk loses lines, too")
    }
}

extension WorkerMetrics {
    static let shadow: [Metric] = [
        gauge(
            "lamplighter_shadow",
            "1 where `delivery.mode` is `shadow`: nothing is sent, and what would have been counts as "
                + "`shadowed` among `lamplighter_pushes_total`."
        ) { $0.shadow == nil ? 0 : 1 },
        metric(
            "lamplighter_shadow_log_lines_total", .counter, labels: ["state"],
            "Lines of the shadow log (`delivery.shadowLog`) that are in the file, and those that are "
                + "`lost` for want of room in memory or on the disk."
        ) { status in
            guard let shadow = status.shadow, let lines = shadow.lines else { return [] }
            return labelled("state", [("written", lines), ("lost", shadow.linesLost)])
        },
    ]
}
