// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Logging
import Synchronization
import Worker

/// How log lines are written, for every logger of the process at once: a reload may change it.
final class LiveLog: Sendable {
    let source: LogSource
    private let levelPosition: Atomic<Int>
    private let isJSON: Atomic<Bool>

    init(_ log: Configuration.Log, source: LogSource = LogSource()) {
        self.source = source
        levelPosition = Atomic(Self.position(of: log.level))
        isJSON = Atomic(log.format == .json)
    }

    func apply(_ log: Configuration.Log) {
        levelPosition.store(Self.position(of: log.level), ordering: .relaxed)
        isJSON.store(log.format == .json, ordering: .relaxed)
    }

    var level: Logger.Level { Logger.Level.allCases[levelPosition.load(ordering: .relaxed)] }

    var format: Configuration.Log.Format { isJSON.load(ordering: .relaxed) ? .json : .text }

    var logger: Logger { Logger(label: "lamplighter") { _ in LineLogHandler(self) } }

    private static func position(of level: Configuration.Log.Level) -> Int {
        Configuration.Log.Level.allCases.firstIndex(of: level)!
    }
}
