// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Entrypoint
import Foundation
import Logging
import PushModel
import Worker

/// Writes each log message as one line to standard error.
struct LineLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    private let log: LiveLog
    /// The level of this logger alone; nil if it has none of its own.
    private var ownLevel: Logger.Level?

    init(_ log: LiveLog) { self.log = log }

    var logLevel: Logger.Level {
        get { ownLevel ?? log.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        if let error = event.error { all["error"] = "\(error)" }
        let line = LogLine(
            time: RecordWriter.now().wall, level: event.level, message: "\(event.message)",
            metadata: all)
        switch log.format {
        case .json: StandardError.write(line.json(source: log.source))
        case .text: StandardError.write(line.text)
        }
    }
}
