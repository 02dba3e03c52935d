// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Logging
import Synchronization
import Worker

/// How log lines are written, for every logger of the process at once: a reload may change it.
final class LiveLog: Sendable {
    private let level: Atomic<Int>
    private let isJSON: Atomic<Bool>

    init(_ log: Configuration.Log) {
        level = Atomic(Self.position(of: log.level))
        isJSON = Atomic(log.format == .json)
    }

    func apply(_ log: Configuration.Log) {
        level.store(Self.position(of: log.level), ordering: .relaxed)
        isJSON.store(log.format == .json, ordering: .relaxed)
    }

    var logger: Logger {
        Logger(label: "lamplighter") { label in Handler(log: self, label: label) }
    }

    private static func position(of level: Configuration.Log.Level) -> Int {
        Configuration.Log.Level.allCases.firstIndex(of: level)!
    }

    /// Both formats, of which each line takes the one that is wanted.
    private struct Handler: LogHandler {
        private let log: LiveLog
        private var json: JSONLogHandler
        private var text: StreamLogHandler
        /// Of this logger alone.
        private var ownLevel: Logger.Level?

        init(log: LiveLog, label: String) {
            self.log = log
            json = JSONLogHandler(logLevel: .trace)
            text = StreamLogHandler.standardError(label: label)
            text.logLevel = .trace
        }

        var logLevel: Logger.Level {
            get { ownLevel ?? Logger.Level.allCases[log.level.load(ordering: .relaxed)] }
            set { ownLevel = newValue }
        }

        var metadata: Logger.Metadata {
            get { json.metadata }
            set {
                json.metadata = newValue
                text.metadata = newValue
            }
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { json[metadataKey: key] }
            set {
                json[metadataKey: key] = newValue
                text[metadataKey: key] = newValue
            }
        }

        func log(event: LogEvent) {
            if log.isJSON.load(ordering: .relaxed) {
                json.log(event: event)
            } else {
                text.log(event: event)
            }
        }
    }
}
