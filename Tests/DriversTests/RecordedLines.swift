// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Logging
import Synchronization

/// Log lines of several threads.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func append(_ line: String) { lines.withLock { $0.append(line) } }
}

/// A log handler that keeps whole lines with their metadata.
struct RecordingHandler: LogHandler {
    let lines: Lines
    var logLevel = Logger.Level.trace
    var metadata: Logger.Metadata = [:]

    init(lines: Lines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        lines.append("\(event.level) \(event.message) \(all)")
    }
}
