// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import Synchronization

final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    func append(_ line: String) { lines.withLock { $0.append(line) } }

    func taken() -> [String] {
        lines.withLock { lines in
            defer { lines.removeAll() }
            return lines
        }
    }
}

struct LineHandler: LogHandler {
    let lines: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: LogLines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let words = (event.metadata ?? [:]).map { "\($0)=\($1)" }.sorted().joined(separator: ", ")
        lines.append("\(event.level) \(event.message) [\(words)]")
    }
}
