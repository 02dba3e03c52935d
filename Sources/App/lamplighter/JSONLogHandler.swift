// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Logging

/// One JSON object per line on standard error, as log collectors expect it.
struct JSONLogHandler: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    init(logLevel: Logger.Level) { self.logLevel = logLevel }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    private struct Line: Encodable {
        var time: String
        var level: String
        var message: String
        var metadata: [String: String]?
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let line = Line(
            time: Date.now.formatted(.iso8601.time(includingFractionalSeconds: true)),
            level: event.level.rawValue, message: "\(event.message)",
            metadata: all.isEmpty ? nil : all.mapValues { "\($0)" })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard var bytes = try? encoder.encode(line) else { return }
        bytes.append(0x0A)
        FileHandle.standardError.write(bytes)
    }
}
