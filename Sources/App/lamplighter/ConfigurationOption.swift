// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import Logging
import Worker

/// `--config`, and what follows from it, shared by all commands that need the configuration.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: "The YAML configuration file. Every key can also be set as LAMPLIGHTER_… variable.")
    var file: String?

    func load() throws -> Configuration {
        try Configuration.load(file: file, environment: ProcessInfo.processInfo.environment)
    }

    /// Logs to standard error, as the configuration says.
    static func logger(_ log: Configuration.Log) -> Logger {
        let level = Logger.Level(rawValue: log.level.rawValue)!
        return Logger(label: "lamplighter") { _ in
            switch log.format {
            case .json: JSONLogHandler(logLevel: level)
            case .text: StreamLogHandler.standardError(label: "lamplighter").at(level)
            }
        }
    }
}

extension StreamLogHandler {
    fileprivate func at(_ level: Logger.Level) -> StreamLogHandler {
        var handler = self
        handler.logLevel = level
        return handler
    }
}

/// Lines for people, on standard error.
enum StandardError {
    static func write(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}
