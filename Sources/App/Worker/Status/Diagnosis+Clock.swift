// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

extension Diagnosis {
    /// What waits since this worker's clock may be ahead.
    mutating func checkClock() {
        let doubt = status.clockDoubt
        guard !doubt.isNothing else { return }
        var waiting: [String] = []
        if doubt.deferred > 0 {
            waiting.append(doubt.deferred.counted("deferred push", plural: "deferred pushes"))
        }
        if doubt.partitions > 0 {
            waiting.append("the events of \(doubt.partitions.counted("partition"))")
        }
        report(
            .warning,
            "this worker's clock is \(doubt.lead.rounded) ahead of every record that it has read, so "
                + "\(waiting.joined(separator: " and ")), expired by this clock alone, are neither "
                + "sent nor ended",
            "compare the clock with the brokers', and set it right; if it is, nothing has been written "
                + "to Kafka for so long, and they end when they would have expired by its records' times"
        )
    }
}
