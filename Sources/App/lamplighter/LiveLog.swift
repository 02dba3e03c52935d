// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Logging
import Synchronization
import Worker

/// Level and format of the log, shared by all loggers of the process, so that a reload can change
/// them.
final class LiveLog: AdjustableLog {
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

    func change(level: Logger.Level) {
        levelPosition.store(Logger.Level.allCases.firstIndex(of: level)!, ordering: .relaxed)
    }

    var level: Logger.Level { Logger.Level.allCases[levelPosition.load(ordering: .relaxed)] }

    var format: Configuration.Log.Format { isJSON.load(ordering: .relaxed) ? .json : .text }

    var logger: Logger { Logger(label: "lamplighter") { _ in LineLogHandler(self) } }

    private static func position(of level: Configuration.Log.Level) -> Int {
        Configuration.Log.Level.allCases.firstIndex(of: level)!
    }
}
