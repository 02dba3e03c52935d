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

    func load() throws(InvalidConfiguration) -> Configuration {
        try Configuration.load(file: file, environment: ProcessInfo.processInfo.environment)
    }

    /// Logs to standard error, as the configuration says.
    static func logger(_ log: Configuration.Log) -> Logger {
        LiveLog(log).logger
    }
}
