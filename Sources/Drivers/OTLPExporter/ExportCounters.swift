// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// What became of exports, for the metrics.
package final class ExportCounters: Sendable {
    package struct Counts: Sendable, Equatable {
        /// Exports by signal and outcome. Each pair has an entry.
        package var exports: [ExportSignal: [ExportOutcome: Int]]
        package var spansExported = 0
        /// Spans of exports that have failed.
        package var spansLost = 0

        package init() {
            let outcomes = Dictionary(ExportOutcome.allCases.map { ($0, 0) }) { first, _ in first }
            exports = Dictionary(ExportSignal.allCases.map { ($0, outcomes) }) { first, _ in first }
        }
    }

    private let state = Mutex(Counts())

    package init() {}

    package var counts: Counts { state.withLock { $0 } }

    package func count(_ outcome: ExportOutcome, of signal: ExportSignal) {
        state.withLock { $0.exports[signal]![outcome]! += 1 }
    }

    package func count(spans: Int, _ outcome: ExportOutcome) {
        state.withLock { counts in
            if outcome == .delivered {
                counts.spansExported += spans
            } else {
                counts.spansLost += spans
            }
        }
    }
}
